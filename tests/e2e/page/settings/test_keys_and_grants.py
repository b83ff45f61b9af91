"""API keys with chosen scopes, and the secrets of workspaces, at the page of their owner."""

import asyncio

import pytest

from support.host.conditions import until
from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, sign_in

pytestmark = pytest.mark.slow

WORKSPACES = "/api/v1/workspaces"
ONLY_CHOSEN = """
    (() => {
        const field = [...document.querySelectorAll('select')].at(-1);
        field.value = 'chosen';
        field.dispatchEvent(new Event('change', {bubbles: true}));
    })()
"""


async def signed_in(stack: LocalStack, chromium: Browser, login: str) -> Page:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, login)
    return page


async def test_a_key_is_made_for_what_was_chosen_and_revoked(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await signed_in(stack, chromium, "karla")
    await page.visit(f"http://{stack.http}/settings/api-keys")
    await page.click("input[placeholder=laptop]")
    await page.type("nightly")
    await page.run(ONLY_CHOSEN)
    await page.click("fieldset label", "Read chats")
    await page.click("button[type=submit]", "Make a key")
    await page.find("tbody tr", "Read chats")
    await page.find("tbody tr", "in 90 days")
    shown = await problems_in_all_looks(page)
    path = "/api/v1/me/api-keys"
    (made,) = (await asyncio.to_thread(call, stack, "GET", path, login="karla"))["items"]
    await page.click("tbody button", "Revoke")
    await page.click("dialog button", "Revoke")
    await page.see("No API keys")
    left = (await asyncio.to_thread(call, stack, "GET", path, login="karla"))["items"]

    assert shown == {}
    assert (made["name"], made["scopes"]) == ("nightly", ["chat:read"])
    assert left == []


async def test_a_secret_is_granted_to_a_workspace_and_taken_back(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await signed_in(stack, chromium, "gisela")

    def prepared() -> str:
        templates = call(stack, "GET", "/api/v1/templates", login="gisela")["items"]
        (scratch,) = [each for each in templates if each["name"] == "scratch"]
        body = {"template_id": scratch["id"], "name": "shop"}
        made = call(stack, "POST", WORKSPACES, body, login="gisela")
        path = f"{WORKSPACES}/{made['id']}"
        until(
            lambda: call(stack, "GET", path, login="gisela")["state"] == "ready",
            "the workspace",
            within_s=60,
        )
        secret = {"name": "deploy", "value": "0123456789", "delivery": "git"}
        call(stack, "POST", "/api/v1/secrets", secret | {"hosts": ["github.com"]}, login="gisela")
        return path

    path = await asyncio.to_thread(prepared)
    await page.visit(f"http://{stack.http}/settings/secrets")
    await page.click("button", "Choose secrets of shop")
    await page.click("dialog label", "deploy")
    await page.click("dialog button[type=submit]")
    await page.find("[aria-label='Secrets of workspaces'] td", "deploy")
    shown = await problems_in_all_looks(page)
    granted = await asyncio.to_thread(call, stack, "GET", f"{path}/grants", login="gisela")
    await page.click("button", "Choose secrets of shop")
    await page.click("dialog label", "deploy")
    await page.click("dialog button[type=submit]")
    await page.find("[aria-label='Secrets of workspaces'] td", "None")
    left = await asyncio.to_thread(call, stack, "GET", f"{path}/grants", login="gisela")

    assert shown == {}
    assert [each["name"] for each in granted["items"]] == ["deploy"]
    assert left["items"] == []
