"""MCP servers at the page: administration, a login in a window of its own, and what chats show."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.types import ImageContent, ResourceLink, TextContent

from gateway.web.mcp_logins import CONTENT_POLICY
from support.host.conditions import until
from support.host.ports import free_port
from support.mcpgateway.authorization_server import (
    FakeAuthorizationServer,
    fake_authorization_server,
)
from support.mcpgateway.everything_server import PNG, everything_server
from support.mcpgateway.servers import eliciting_process, until_listening
from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import call, idle, new_user, sign_in, written

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def allowing_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    home = tmp_path_factory.mktemp("mcp") / "home"
    stack = LocalStack.at(home, MCPGATEWAY_ALLOWED_HOSTS="127.0.0.0/8")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


@pytest.fixture
def stack(allowing_stack: LocalStack) -> LocalStack:
    """Give a stack whose operator allows MCP servers on this machine, without any."""
    for each in call(allowing_stack, "GET", "/api/v1/mcp/servers")["items"]:
        call(allowing_stack, "DELETE", f"/api/v1/mcp/servers/{each['id']}")
    return allowing_stack


async def added(stack: LocalStack, slug: str, url: str, **settings: object) -> str:
    """Add a server as the owner, and return its id."""
    body = {"slug": slug, "url": url, "is_enabled": True, "availability": "default_on"}
    body |= {"approval_policy": "never", **settings}
    made = await asyncio.to_thread(call, stack, "POST", "/api/v1/mcp/servers", body)
    return str(made["id"])


@asynccontextmanager
async def guarded(stack: LocalStack) -> AsyncIterator[tuple[FakeAuthorizationServer, str]]:
    """Add a server for which people sign in; give where they do, and the id of the server."""
    async with fake_authorization_server() as issuer:
        server_id = await added(
            stack, "guarded", issuer.mcp_url, display_name="Guarded", auth_kind="oauth2"
        )
        yield issuer, server_id


async def connected_and_called(page: Page, chromium: Browser, stack: LocalStack, at: str) -> None:
    """Connect an account before a chat begins, and have the chat call the server."""
    await page.visit(f"http://{stack.http}/")
    await page.see("Guarded: not connected")
    await page.click("button", "Connect")
    await agreed(chromium, page, at)
    await written(page, "call: guarded__whoami {}")
    await page.see("whoami answered")


async def administrator(stack: LocalStack, chromium: Browser) -> Page:
    """Give a tab of an administrator, who is created unless another test did."""
    users = await asyncio.to_thread(call, stack, "GET", "/api/v1/users")
    if "root" not in [each["login"] for each in users["items"]]:
        await asyncio.to_thread(new_user, stack, "root", "admin")
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, "root")
    return page


async def chat_of(stack: LocalStack, page: Page, rest: str = "") -> Any:
    """Return the chat that is shown, as it is stored, or what else is below its path."""
    chat_id = str(await page.run("location.pathname.split('/')[2]"))
    path = f"/api/v1/chats/{chat_id}{rest}"
    return await asyncio.to_thread(call, stack, "GET", path, login="paula")


async def messages_of(stack: LocalStack, page: Page) -> Any:
    """Return the stored messages of the chat that is shown."""
    return await chat_of(stack, page, "/messages")


async def test_a_person_connects_an_account_in_a_window_and_uses_the_server(
    stack: LocalStack, chromium: Browser, page: Page
) -> None:
    async with guarded(stack) as (issuer, _):
        await connected_and_called(page, chromium, stack, issuer.url)
        assert issuer.calls == ["alice"]
        await page.visit(f"http://{stack.http}/settings/mcp")
        await page.click("button", "Disconnect")
        await page.click("dialog button", "Disconnect")
        await page.see("Not connected")
        assert [login.is_revoked for login in issuer.logins] == [True]


async def test_a_call_whose_login_ended_goes_on_after_connecting_again(
    stack: LocalStack, chromium: Browser, page: Page
) -> None:
    async with guarded(stack) as (issuer, _):
        await connected_and_called(page, chromium, stack, issuer.url)
        issuer.logins[0].is_revoked = True
        await written(page, "call: guarded__whoami {}")
        await page.find(".action-head", "The server Guarded needs your login again")
        await page.click(".action button", "Connect")
        await agreed(chromium, page, issuer.url)
        await page.until("!document.querySelector('.action')")
        await idle(page)
        assert issuer.calls == ["alice", "alice"]


async def test_a_declined_login_is_told_and_another_one_adds_what_the_server_lacks(
    stack: LocalStack, chromium: Browser, page: Page
) -> None:
    async with guarded(stack) as (issuer, server_id):
        await page.visit(f"http://{stack.http}/settings/mcp")
        await page.click("button", "Connect")
        window = await chromium.window_at(f"{issuer.url}/authorize")
        await window.click("a", "Decline")
        await window.see("That did not work")
        await window.see("Not today.")
        await page.see("The login failed. Its window says why.")
        await page.find(".badge", "Not connected")
        assert issuer.forms == []
        await window.close()
        await page.click("button", "Connect")
        await agreed(chromium, page, issuer.url)
        await page.find(".badge", "Connected")

        issuer.needed_scope = "more"
        path = f"/api/v1/mcp/servers/{server_id}/tools/call"
        body = {"original_name": "secret", "arguments": {}}
        lacking = await asyncio.to_thread(call, stack, "POST", path, body, login="paula")
        assert lacking["reason"] == "insufficient_scope"
        await page.visit(f"http://{stack.http}/settings/mcp")
        await page.find(".badge", "Needs more permissions")
        await page.click("button", "Connect again")
        await agreed(chromium, page, issuer.url)
        await page.find(".badge", "Connected")
        assert issuer.logins[-1].scopes == ("tools", "offline_access", "more")
        done = await asyncio.to_thread(call, stack, "POST", path, body, login="paula")
        assert done["content"] == [{"type": "text", "text": "42"}]


async def test_a_login_at_a_server_that_was_switched_off_is_given_up(
    stack: LocalStack, chromium: Browser, page: Page
) -> None:
    async with guarded(stack) as (issuer, server_id):
        await page.visit(f"http://{stack.http}/settings/mcp")
        await page.click("button", "Connect")
        await agreed(chromium, page, issuer.url)
        path, body = f"/api/v1/mcp/servers/{server_id}", {"is_enabled": False}
        await asyncio.to_thread(call, stack, "PATCH", path, body)
        await page.visit(f"http://{stack.http}/settings/mcp")
        await page.find(".badge", "no longer usable")
        await page.click("button", "Disconnect")
        await page.click("dialog button", "Disconnect")
        await page.until("!document.body.innerText.includes('no longer usable')")
        assert [login.is_revoked for login in issuer.logins] == [True]


async def agreed(chromium: Browser, page: Page, issuer: str) -> None:
    """Agree in the window of a login, and wait until it is closed."""
    window = await chromium.window_at(f"{issuer}/authorize")
    assert await window.run("window.opener") is None
    await window.click("a", "Agree")
    await page.see("Your account is connected.")
    await page.until("!document.body.innerText.includes('not connected')")
    while len(await chromium.windows()) > 1:
        await page.run("new Promise((done) => setTimeout(done, 25))")


async def test_the_page_to_which_a_login_comes_back_has_a_strict_policy(
    stack: LocalStack,
) -> None:
    request = urllib.request.Request(f"http://{stack.http}/mcp/callback?state=x&code=y")
    with pytest.raises(urllib.error.HTTPError) as refused:
        await asyncio.to_thread(urllib.request.urlopen, request)
    refused.value.close()
    headers = refused.value.headers
    assert headers["content-security-policy"] == CONTENT_POLICY
    assert headers["cross-origin-opener-policy"] == "same-origin"


async def test_a_blocked_window_is_told(stack: LocalStack, page: Page) -> None:
    async with guarded(stack):
        await page.visit(f"http://{stack.http}/settings/mcp")
        await page.find("button", "Connect")
        await page.run("window.open = () => null; 0")
        await page.click("button", "Connect")
        await page.see("Your browser blocked the window.")


async def test_an_administrator_adds_probes_denies_and_switches_off_a_server(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await administrator(stack, chromium)
    async with everything_server() as server:
        await page.visit(f"http://{stack.http}/admin/mcp")
        await page.click("button", "Add a server")
        await page.click("dialog label", "Name")
        await page.type("Everything")
        await page.click("dialog label", "Address")
        await page.type(server.url)
        await page.click("dialog button", "Test the connection")
        await page.see("It speaks 2026-07-28 and offers 5 tools.")
        await page.click("dialog button[type=submit]", "Add the server")
        await page.find("section.card", "everything")
        await page.until("document.querySelector('section.card input[type=checkbox]').checked")
        await page.click("section.card button", "Test the connection")
        await page.see("List its tools")
        await page.click("section.card button", "Tools")
        await page.find("dialog code", "whoami")
        await page.click("dialog button", "Deny", place=0)
        await page.find("dialog button", "Offer again")
    stored = (await asyncio.to_thread(call, stack, "GET", "/api/v1/mcp/servers"))["items"]
    assert [(each["slug"], each["is_enabled"], each["tool_deny_list"]) for each in stored] == [
        ("everything", True, ["echo"])
    ]


async def test_a_changed_definition_is_shown_beside_the_approved_one_and_approved(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await administrator(stack, chromium)
    port = free_port()
    async with everything_server(port, "Repeat a text.") as server:
        server_id = await added(stack, "everything", server.url)
        path = f"/api/v1/mcp/servers/{server_id}/tools"
        await asyncio.to_thread(call, stack, "GET", path)
    async with everything_server(port, "Repeat a text, and send it elsewhere."):

        def is_quarantined() -> bool:
            return any(each["is_quarantined"] for each in call(stack, "GET", path)["items"])

        await asyncio.to_thread(until, is_quarantined, "a quarantine", within_s=60)
        await page.visit(f"http://{stack.http}/admin/mcp")
        await page.click("section.card button", "Tools")
        await page.see("Its definition changed; it is not offered")
        await page.see("Approved before: Repeat a text.")
        await page.see("Repeat a text, and send it elsewhere.")
        await page.click("dialog button", "Approve the new definition")
        await page.see("echo is offered again.")
        assert not await asyncio.to_thread(is_quarantined)


def hostile() -> list[TextContent | ImageContent | ResourceLink]:
    """Answer with what must not become anything but text."""
    return [
        TextContent(type="text", text="<img src=x onerror='window.hacked = 1'>"),
        ImageContent(type="image", data=PNG, mime_type="image/png"),
        ImageContent(type="image", data="not base64!", mime_type="image/png"),
        ResourceLink(type="resource_link", uri="javascript:window.hacked=1", name="click"),
    ]


async def test_a_chat_chooses_servers_and_shows_results_part_by_part(
    stack: LocalStack, page: Page
) -> None:
    async with everything_server() as server:
        server.server.add_tool(hostile, structured_output=False)
        server_id = await added(stack, "everything", server.url, availability="default_off")
        await page.visit(f"http://{stack.http}/")
        await page.click("button", "0 servers")
        await page.click("[role=menuitemcheckbox]", "everything")
        await page.find("button", "1 server")
        await written(page, "call: everything__picture {}")
        await page.find("img.mcp-picture")
        parts = await page.run(
            "[...document.querySelectorAll('.mcp-part')].map((each) =>"
            " each.querySelector('img') ? 'picture' : each.innerText.trim())"
        )
        assert parts == ["before", "picture", "after"]
        await written(page, "call: everything__hostile {}")
        await page.see("<img src=x onerror")
        await page.see("javascript:window.hacked=1")
        await idle(page)
        active = ".mcp-part script, .mcp-part a[href^=javascript], .mcp-part [onerror]"
        found = await page.run(
            f"[document.querySelectorAll('{active}').length, typeof window.hacked,"
            " document.querySelectorAll('img.mcp-picture').length]"
        )
        assert found == [0, "undefined", 2]
        # Another message chooses otherwise.
        assert (await chat_of(stack, page))["mcp_server_ids"] == [server_id]
        await page.click("button", "1 server")
        await page.click("[role=menuitemcheckbox]", "everything")
        await page.find("button", "0 servers")
        await written(page, "hello")
        async with asyncio.timeout(60):
            while (await chat_of(stack, page))["mcp_server_ids"]:
                await page.see("hello")


async def test_what_a_server_asks_is_answered_in_a_form(stack: LocalStack, page: Page) -> None:
    port = free_port()
    with eliciting_process(port, "modern"):
        await until_listening(port)
        url = f"http://127.0.0.1:{port}/mcp"
        await added(stack, "asking", url, display_name="The House")
        await page.visit(f"http://{stack.http}/")
        await page.find("button", "1 server")
        await written(page, "call: asking__paint {}")
        await page.find(".action-head", "The server The House asks")
        await page.see("Which colour?")
        await page.see("The House receives what you write here.")
        await page.click(".action button", "Accept")
        await page.see("Fill this in.")
        await page.click(".action input")
        await page.type("red")
        await page.click(".action button", "Accept")
        await page.see("paint answered")
    stored = await messages_of(stack, page)
    assert "accept red house" in json.dumps(stored)


async def test_prompts_are_slash_commands_and_resources_are_attached_by_an_at_sign(
    stack: LocalStack, page: Page
) -> None:
    async with everything_server() as server:
        await added(stack, "everything", server.url)
        await page.visit(f"http://{stack.http}/")
        await page.find("button", "server")
        await page.click("textarea")
        await page.type("/every")
        await page.click("[role=option]", "/everything:greet")
        field = "document.querySelector('textarea').value"
        await page.until(f"{field} === '/everything:greet name='")
        await page.type("Ann")
        await page.press("Enter")
        await page.until(f"{field} === 'Say hello to Ann.'")
        await page.type(" See @not")
        await page.click("[role=option]", "memo://note")
        await page.find(".file-chip", "note")
        await page.until(f"{field} === 'Say hello to Ann. See '")
        await page.press("Enter")
        await page.until("location.pathname.startsWith('/chats/')")
    stored = await messages_of(stack, page)
    (sent,) = [each["content"] for each in stored["messages"] if each["role"] == "user"]
    assert [part["type"] for part in sent] == ["text", "file"]
    assert sent[0]["text"] == "Say hello to Ann. See"
