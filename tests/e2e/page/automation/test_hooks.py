"""Hooks in the administration: added, tested, asked, edited, switched off and deleted."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from support.net.browser import Browser
from support.net.model_server import model_server, whole
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, idle, new_user, sign_in, written

pytestmark = pytest.mark.slow

NO_DIALOG = "!document.querySelector('dialog')"
ANSWER = {"decision": "deny", "reason": "not on a Friday", "notice": "Commands rest on Fridays."}
DENIAL = whole(json.dumps(ANSWER).encode())
BROKEN = whole(b"out of order", "500 Internal Server Error")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Give a stack whose hooks may be on this machine."""
    home = tmp_path_factory.mktemp("hooks") / "home"
    stack = LocalStack.at(home, CHATD_ALLOWED_HOSTS="127.0.0.0/8")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    new_user(stack, "hugo", "admin")
    yield stack
    assert stack.parley("down").returncode == 0


async def test_a_hook_is_added_tested_asked_edited_switched_off_and_deleted(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "hugo")
    # It answers the test and the call, and fails from then on.
    async with model_server(DENIAL, DENIAL, BROKEN) as consumer:
        await page.visit(f"http://{stack.http}/admin/hooks")
        await page.see("No hooks")
        await page.click("button", "Add a hook")
        await page.click("dialog label", "Name")
        await page.type("policy")
        await page.click("dialog label", "Address")
        await page.type("http://192.168.7.7/hook")
        await page.click("dialog label", "Tools")
        await page.type("exec*")
        form = await problems_in_all_looks(page)
        await page.click("dialog button[type=submit]", "Add the hook")
        # A refused address is marked, and what was typed stays.
        await page.find("dialog input[type=url][aria-invalid=true]")
        kept = await page.run("document.querySelector('dialog textarea').value")
        await page.click("dialog label", "Address")
        await page.run("document.activeElement.select()")
        await page.type(f"{consumer.url}/hook")
        await page.click("dialog button[type=submit]", "Add the hook")
        await page.see("The secret that signs the requests to policy")
        secret = await page.run("document.querySelector('.once-value').innerText")
        await page.click("button", "Done")
        await page.click("section.card button", "Test")
        await page.see("It answered: deny")
        await page.visit(f"http://{stack.http}/")
        await written(page, "run: touch forbidden.txt")
        await page.until("location.pathname.startsWith('/chats/')")
        await idle(page)
        await page.find(".assistant-message .notice-words", "policy: Commands rest on Fridays.")
        await page.visit(f"http://{stack.http}/admin/hooks")
        await page.click("section.card button", "Deliveries")
        await page.find("dialog td .cell-side", "Notice: Commands rest on Fridays.")
        await page.find("dialog td .badge", "deny")
        await page.find("dialog td a", "chat")
        rows = await page.run("document.querySelectorAll('dialog tbody tr').length")
        log = await problems_in_all_looks(page)
        await page.click("dialog button", "Close")
        await page.until(NO_DIALOG)
        # It fails now, and the log says why.
        await page.click("section.card button", "Test")
        await page.see("The test failed")
        await page.click("section.card button", "Deliveries")
        await page.find("dialog p", "3 deliveries, 1 failed")
        await page.click("dialog button", "Only failed")
        await page.until("document.querySelectorAll('dialog tbody tr').length === 1")
        reason = await page.run("document.querySelector('dialog td .badge + .cell-side').innerText")
        await page.click("dialog button", "Close")
        await page.until(NO_DIALOG)
        await page.click("section.card button", "Edit")
        await page.click("dialog label", "stop")
        await page.click("dialog button[type=submit]", "Save")
        await page.see("The hook is changed.")
        await page.until(NO_DIALOG)
        await page.click("section.card label", "Enabled")
        await page.find("section.card .badge", "disabled")
        shown = await problems_in_all_looks(page)
    await page.click("section.card button", "New secret")
    await page.click("dialog button", "New secret")
    await page.see("The secret that signs the requests to policy")
    other = await page.run("document.querySelector('.once-value').innerText")
    await page.click("button", "Done")
    await page.find("section.card p", "signed with the previous secret as well until")
    (stored,) = (await asyncio.to_thread(call, stack, "GET", "/api/v1/hooks"))["items"]
    await page.click("section.card button", "Delete")
    await page.click("dialog button", "Delete")
    await page.see("No hooks")

    assert (form, log, shown) == ({}, {}, {})
    assert kept == "exec*"
    assert secret.startswith("whsec_")
    assert other.startswith("whsec_")
    assert other != secret
    assert rows == 2
    assert reason
    assert (stored["events"], stored["tools"]) == (["pre_tool_use", "stop"], ["exec*"])
    assert stored["disabled"] is True


async def test_a_hook_that_was_changed_meanwhile_is_not_overwritten(
    stack: LocalStack, chromium: Browser
) -> None:
    body = {"name": "audit", "url": "http://127.0.0.1:8999/", "events": ["stop"], "disabled": True}
    made = (await asyncio.to_thread(call, stack, "POST", "/api/v1/hooks", body))["hook"]
    path = f"/api/v1/hooks/{made['id']}"
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "hugo")
    await page.visit(f"http://{stack.http}/admin/hooks")
    await page.click("section.card button", "Edit")
    await page.click("dialog label", "Name")
    await page.type(" of mine")
    await asyncio.to_thread(call, stack, "PATCH", path, {"name": "of another"})
    await page.click("dialog button[type=submit]", "Save")
    await page.find("dialog form > [role=alert]")
    typed = await page.run("document.querySelector('dialog input').value")
    stored = await asyncio.to_thread(call, stack, "GET", path)
    await asyncio.to_thread(call, stack, "DELETE", path)

    assert typed.endswith(" of mine")
    assert stored["name"] == "of another"
