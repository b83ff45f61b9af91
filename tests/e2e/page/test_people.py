"""Sharing with people who are found by name, and identity providers at the page."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, new_user, sign_in, written

pytestmark = pytest.mark.slow


async def test_a_chat_is_shared_with_a_person_who_is_found_by_name_and_taken_back(
    stack: LocalStack, chromium: Browser
) -> None:
    new_user(stack, "quentin")
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "rosa")
    await written(page, "repeat after me: for two")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    path = "/api/v1/chats?shared_with_me=true"
    await page.click(".bar button", "Commands of")
    await page.click("[role=menuitem]", "Share")
    await page.see("Only you can read it.")
    await page.click("dialog input")
    await page.type("quen")
    await page.click("dialog button", "Add quentin")
    await page.find("dialog button", "Remove quentin")
    shared = call(stack, "GET", path, login="quentin")["items"]
    await page.click("dialog button", "Remove quentin")
    await page.see("Only you can read it.")

    assert [each["id"] for each in shared] == [chat_id]
    assert call(stack, "GET", path, login="quentin")["items"] == []


async def test_an_administrator_adds_an_identity_provider_and_a_person_may_link_an_identity_there(
    stack: LocalStack, chromium: Browser
) -> None:
    new_user(stack, "silke", "admin")
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "silke")
    await page.visit(f"http://{stack.http}/admin/issuers")
    await page.see("No identity providers")
    labels = {
        "Name in addresses": "corp",
        "Shown as": "Corp",
        "Issuer": "https://login.corp.example",
        "Client id": "parley",
    }
    for label, text in labels.items():
        await page.run(
            "[...document.querySelectorAll('.field')]"
            f".find((each) => each.querySelector('label').innerText === '{label}')"
            ".querySelector('input').focus()"
        )
        await page.type(text)
    await page.click("button", "Add the identity provider")
    await page.find("td code", "/login/oidc/corp/callback")
    await page.visit(f"http://{stack.http}/settings/security")
    await page.find("button", "Link Corp")
    await page.see("No identity is linked")
    await page.visit(f"http://{stack.http}/admin/issuers")
    await page.click("td button", "Delete")
    await page.click("dialog button", "Delete")
    await page.see("No identity providers")

    assert call(stack, "GET", "/api/v1/oidc-issuers")["items"] == []
