"""Servers of the workspace at the page: shown exactly, trusted, changed, and trusted no longer."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.chatd.workspace_servers import stdio_server
from support.host.conditions import until
from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_of
from support.stack.page_session import begun, call, idle, written

pytestmark = pytest.mark.slow

PROGRAM = Path(stdio_server.__file__).read_text()
EVENTS = {"workspace.server_trusted", "workspace.server_untrusted"}
TRUST = ".panel .card button"


def defined(*arguments: str) -> str:
    server = {"command": "python3", "args": [*arguments], "env": {"GREETING": "a\u202eb <b>c</b>"}}
    return step(".mcp.json", json.dumps({"mcpServers": {"plain": server}}))


def step(path: str, content: str) -> str:
    return f"call: write_file {json.dumps({'path': path, 'content': content})}"


def servers_of(stack: LocalStack, chat_id: str) -> list[dict[str, Any]]:
    answer = call(stack, "GET", f"/api/v1/chats/{chat_id}/servers", login="vera")
    found: list[dict[str, Any]] = answer["servers"]
    return found


def recorded(stack: LocalStack) -> set[str]:
    log = call(stack, "GET", "/api/v1/audit-log?action=workspace&limit=50")["items"]
    return {each["action"] for each in log}


async def test_a_server_of_the_workspace_is_shown_exactly_and_trusted_until_it_changes(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(
        chromium, stack, "vera", "\n".join((step("server.py", PROGRAM), defined("server.py")))
    )
    chat_id = (await page.run("location.pathname")).rpartition("/")[2]
    # The turn may be over before the page has opened its chat: nothing of it needs to be seen.
    await page.find(".notice", "1 MCP server along that you have not trusted: plain")
    await page.click(".notice button", "Review")
    await page.find(".panel .badge", "not trusted")
    await page.click(TRUST, "Trust")
    asked = await page.run("document.querySelector('.dialog .server-pieces').innerText")
    warned = await page.run("document.querySelector('.dialog .notice')?.innerText ?? ''")
    problems = await problems_of(page)
    await page.click(".dialog button", "Cancel")
    problems += await problems_of(page)
    before = servers_of(stack, chat_id)[0]["state"]
    await page.click(TRUST, "Trust")
    await page.click(".dialog button", "Trust this definition")
    await page.find(".panel .badge.is-accent", "trusted")
    trusted = servers_of(stack, chat_id)[0]["state"]
    await page.until("!document.querySelector('.chat-foot .notice')")
    await written(page, defined("server.py", "another"))
    await page.until("document.querySelectorAll('.assistant-message .prose').length === 2")
    await idle(page)
    await page.find(".notice", "1 MCP server along that you have not trusted: plain")
    await page.find(".panel .badge.is-warn", "changed since it was trusted")
    await page.find(".panel .server-pieces", "another")
    changed = servers_of(stack, chat_id)[0]["state"]
    await page.click(TRUST, "Trust")
    await page.click(".dialog button", "Trust this definition")
    await page.find(".panel .badge.is-accent", "trusted")
    await page.click(TRUST, "Remove trust")
    await page.click(".dialog button", "Remove trust")
    await page.until("document.querySelector('.panel .badge')?.innerText === 'not trusted'")
    until(lambda: recorded(stack) >= EVENTS, "an entry of the audit log", within_s=30)

    assert problems == []
    assert asked.split("\n") == [
        *("Program", "python3", "Argument 1", "server.py"),
        *("Variable GREETING", "aU+202Eb <b>c</b>"),
    ]
    assert "1 character is not shown" in warned
    assert (before, trusted, changed) == ("untrusted", "trusted", "untrusted")
    assert servers_of(stack, chat_id)[0]["state"] == "untrusted"


async def test_servers_that_are_not_trusted_are_told_where_nothing_of_the_turn_was_seen(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await begun(chromium, stack, "vera", defined("server.py"))
    address = await page.run("location.href")
    later = await chromium.page()
    await later.visit(address)
    await later.find(".notice", "1 MCP server along that you have not trusted: plain")
    await later.click(".notice button", "Not now")
    await later.until("!document.querySelector('.chat-foot .notice')")
    await later.visit(address)
    await later.find(".assistant-message .prose")
    await later.click(".bar button", "Workspace of the chat")
    await later.click("[role=tab]", "Servers")
    await later.find(".panel .badge", "not trusted")

    assert await later.run("document.querySelectorAll('.chat-foot .notice').length") == 0
