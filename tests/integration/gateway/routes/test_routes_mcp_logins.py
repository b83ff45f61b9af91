"""Logins at MCP servers over HTTP: a real gateway, mcpgateway and authorization server."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.responses import Response

from gateway.web.mcp_logins import CONTENT_POLICY
from mcpgateway.oauth.domain.flows import FLOW_LIFETIME
from mcpgateway.servers.groups import TTL_S
from mcpgateway.servers.schema import MIGRATIONS, SCHEMA
from parley.identity import ServiceName, SigningKey, TrustFile
from parley.postgres import migrate
from parley.rpc import Address
from support.database.postgres import TestPostgres
from support.gateway.browser import Browser, invited
from support.gateway.stack import GatewayStack, gateway_stack
from support.mcpgateway.authorization_server import (
    FakeAuthorizationServer,
    fake_authorization_server,
)
from support.mcpgateway.gateway import KnownGateway, mcp_gateway

SERVERS = "/api/v1/mcp/servers"


async def migrate_mcp(url: str) -> None:
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)


@dataclass(frozen=True, slots=True)
class Whole:
    """A gateway with a mcpgateway behind it, and a server that needs logins."""

    stack: GatewayStack
    issuer: FakeAuthorizationServer
    server_id: str

    @property
    def path(self) -> str:
        return f"{SERVERS}/{self.server_id}/login"


@pytest.fixture
async def whole(
    tmp_path: Path, postgres: TestPostgres, identity_database: str
) -> AsyncIterator[Whole]:
    directory = tmp_path / "mcp"
    directory.mkdir(mode=0o700)
    address = Address.parse(f"unix:{directory}/mcp.sock")
    own_key = SigningKey.generate()
    TrustFile(tmp_path / "trust.json").add_key(ServiceName.MCPGATEWAY, own_key)
    async with (
        postgres.database(template="mcp", prepare=migrate_mcp) as mcp_database,
        fake_authorization_server() as issuer,
        gateway_stack(tmp_path, identity_database, mcpgateway=(address,)) as stack,
    ):
        key = SigningKey.load(stack.settings.signing_key_file)
        TrustFile(directory / "trust.json").add_key(ServiceName.GATEWAY, key)
        asked = KnownGateway(stack.gateway.grpc.address, own_key)
        async with mcp_gateway(
            directory, mcp_database, allowed=issuer.place, clock=stack.clock, asked=asked
        ):
            body = {
                "slug": "guarded",
                "url": issuer.mcp_url,
                "is_enabled": True,
                "auth_kind": "oauth2",
            }
            made = await stack.owner.request("POST", SERVERS, body)
            yield Whole(stack, issuer, made.json()["id"])


async def test_a_person_logs_in_by_a_window_of_its_own(whole: Whole) -> None:
    browser = await invited(whole.stack, "ada")
    before = (await browser.call("GET", whole.path)).json()
    left = await browser.open(f"/mcp/login/{whole.server_id}")
    assert (left.status, left.headers["location"].partition("?")[0]) == (
        303,
        f"{whole.issuer.url}/authorize",
    )
    back = await browser.open(whole.issuer.way_back(left.headers["location"]))
    text = back.body.decode()
    after = (await browser.call("GET", whole.path)).json()
    listed = (await browser.call("GET", SERVERS)).json()["items"][0]
    gone = (await browser.call("DELETE", whole.path)).json()

    assert (before["status"], before["message"]) == (
        "not_connected",
        "You are not connected to guarded. Connect your account to use it.",
    )
    assert (back.status, back.headers["content-security-policy"]) == (200, CONTENT_POLICY)
    assert re.findall("<body [^>]*>", text) == [
        f'<body data-server-id="{whole.server_id}" data-outcome="connected">'
    ]
    assert (after["status"], after["granted_scopes"], after["message"]) == (
        "connected",
        ["offline_access", "tools"],
        "",
    )
    assert listed["authorization_status"] == "connected"
    assert gone == {"was_connected": True, "revocation": "revoked"}
    assert not [secret for secret in whole.issuer.given if secret in text + str(after) + str(gone)]


async def test_a_login_cannot_be_finished_by_somebody_else(whole: Whole) -> None:
    ada, eve = await invited(whole.stack, "ada"), await invited(whole.stack, "eve")
    left = await ada.open(f"/mcp/login/{whole.server_id}")
    address = whole.issuer.way_back(left.headers["location"])
    # Eve has her own cookie of a login.
    await eve.open(f"/mcp/login/{whole.server_id}")
    stolen = await eve.open(address)
    assert (stolen.status, "another user or in another browser" in stolen.body.decode()) == (
        409,
        True,
    )
    assert ('data-outcome="failed"' in stolen.body.decode(), whole.issuer.forms) == (True, [])
    anonymous = await Browser(whole.stack).open(address)
    assert (anonymous.status, "Sign in first" in anonymous.body.decode()) == (401, True)


async def begun(whole: Whole, browser: Browser) -> str:
    """Begin a login, agree, and return the address to which the browser is sent back."""
    left = await browser.open(f"/mcp/login/{whole.server_id}")
    return whole.issuer.way_back(left.headers["location"])


async def test_a_login_is_not_finished_without_its_cookie_with_another_state_late_or_twice(
    whole: Whole,
) -> None:
    ada = await invited(whole.stack, "ada")
    address = await begun(whole, ada)
    without_cookie = Browser(whole.stack)
    without_cookie.cookies = {
        name: value for name, value in ada.cookies.items() if not name.endswith("parley_mcp_login")
    }
    assert len(without_cookie.cookies) == len(ada.cookies) - 1
    refusals = [await without_cookie.open(address)]
    # A login is spent by the first attempt to complete it, of any user.
    refusals.append(await ada.open(address))
    fresh = await begun(whole, ada)
    state = whole.issuer.asked[-1]["state"]
    refusals.append(await ada.open(fresh.replace(state, "x" * 43)))
    whole.stack.clock.advance(FLOW_LIFETIME.total_seconds() + 1)
    refusals.append(await ada.open(fresh))

    texts = [reply.body.decode() for reply in refusals]
    assert [reply.status for reply in refusals] == [409] * 4
    assert ["another user or in another browser" in text for text in texts[:1]] == [True]
    assert "was completed before" in texts[1]
    assert ["took too long" in text for text in texts[2:]] == [True, True]
    assert all('data-outcome="failed"' in text for text in texts)
    assert whole.issuer.forms == []
    assert (await ada.call("GET", whole.path)).json()["status"] == "not_connected"


async def test_a_login_is_not_finished_after_an_administrator_changed_the_server(
    whole: Whole,
) -> None:
    ada = await invited(whole.stack, "ada")
    address = await begun(whole, ada)
    moved = {"url": f"{whole.issuer.url}/elsewhere"}
    changed = await whole.stack.owner.request("PATCH", f"{SERVERS}/{whole.server_id}", moved)
    refused = await ada.open(address)

    assert (changed.status, refused.status, whole.issuer.forms) == (200, 409, [])
    assert (await ada.call("GET", whole.path)).json()["status"] == "not_connected"


async def test_a_user_who_left_the_group_of_a_server_can_give_up_a_login(whole: Whole) -> None:
    ada, owner = await invited(whole.stack, "ada"), whole.stack.owner
    users = (await owner.request("GET", "/api/v1/users")).json()["items"]
    [user_id] = [each["id"] for each in users if each["login"] == "ada"]
    group = (await owner.request("POST", "/api/v1/groups", {"name": "one"})).json()["id"]
    member, server = f"/api/v1/groups/{group}/members/{user_id}", f"{SERVERS}/{whole.server_id}"
    assert (await owner.request("PUT", member)).status < 300
    assert (await owner.request("PATCH", server, {"group_ids": [group]})).status == 200
    assert (await ada.open(await begun(whole, ada))).status == 200
    assert (await owner.request("DELETE", member)).status == 204
    # No notice comes from this gateway, so what is known of the group has to grow old.
    whole.stack.clock.advance(TTL_S + 1)
    whole.issuer.answers["/revoke"] = Response("a secret text", status_code=500)
    seen = await ada.call("GET", server)
    logins = (await ada.call("GET", "/api/v1/mcp/logins")).json()["items"]
    gone = await ada.call("DELETE", whole.path)
    again = await ada.call("DELETE", whole.path)
    no_logins = (await ada.call("GET", "/api/v1/mcp/logins")).json()["items"]

    assert seen.status == 404
    assert [(each["server_id"], each["is_usable"]) for each in logins] == [(whole.server_id, False)]
    assert no_logins == []
    assert (gone.status, gone.json()) == (200, {"was_connected": True, "revocation": "failed"})
    assert (again.status, again.json()) == (
        200,
        {"was_connected": False, "revocation": "not_needed"},
    )
    assert "a secret text" not in gone.body.decode()


async def test_other_sites_begin_no_login_and_texts_of_answers_are_escaped(whole: Whole) -> None:
    ada = await invited(whole.stack, "ada")
    cookies = "; ".join(f"{name}={value}" for name, value in ada.cookies.items())
    headers = {"Cookie": cookies, "Sec-Fetch-Site": "cross-site"}
    forged = await whole.stack.anonymous.request(
        "GET", f"/mcp/login/{whole.server_id}", headers=headers
    )
    assert (forged.status, forged.json()["code"]) == (403, "CROSS_SITE_REQUEST")

    left = await ada.open(f"/mcp/login/{whole.server_id}")
    evil = {"error": "access_denied", "error_description": "<script>alert(1)</script>"}
    answer = whole.issuer.agree(left.headers["location"], code=None, **evil)
    address = urlsplit(whole.issuer.asked[-1]["redirect_uri"]).path
    declined = await ada.open(f"{address}?{urlencode(answer)}")
    text = declined.body.decode()
    assert (declined.status, text.count("<script>"), "&lt;script&gt;" in text) == (409, 1, True)


async def test_the_installation_describes_itself_to_authorization_servers(whole: Whole) -> None:
    origin = "http://parley.test:8080"
    described = await whole.stack.anonymous.request("GET", "/.well-known/mcp-client.json")
    assert (described.status, described.json()) == (
        200,
        {
            "client_id": f"{origin}/.well-known/mcp-client.json",
            "client_name": "Parley",
            "client_uri": origin,
            "redirect_uris": [f"{origin}/mcp/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        },
    )
