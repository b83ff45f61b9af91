"""MCP servers over HTTP: a real gateway before a real mcpgateway and a real MCP server."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcpgateway.servers.schema import MIGRATIONS, SCHEMA
from parley.identity import Role, ServiceName, SigningKey, TrustFile
from parley.postgres import migrate
from parley.rpc import Address
from support.database.postgres import TestPostgres
from support.gateway.stack import GatewayStack, gateway_stack
from support.gateway.users import client_with
from support.mcpgateway.everything_server import EverythingServer, everything_server
from support.mcpgateway.gateway import KnownGateway, mcp_gateway
from support.net.http_client import HttpClient

SERVERS = "/api/v1/mcp/servers"
SECRET = "s3cret-s3cret"
NEW_USER = {"login": "newcomer", "role": "member"}


async def migrate_mcp(url: str) -> None:
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)


@dataclass(frozen=True, slots=True)
class Whole:
    """A gateway with a mcpgateway behind it, and an MCP server."""

    stack: GatewayStack
    every: EverythingServer
    member: HttpClient

    @property
    def admin(self) -> HttpClient:
        return self.stack.owner


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
        everything_server() as every,
        gateway_stack(tmp_path, identity_database, mcpgateway=(address,)) as stack,
    ):
        key = SigningKey.load(stack.settings.signing_key_file)
        TrustFile(directory / "trust.json").add_key(ServiceName.GATEWAY, key)
        asked = KnownGateway(stack.gateway.grpc.address, own_key)
        async with mcp_gateway(
            directory, mcp_database, allowed=every.place, clock=stack.clock, asked=asked
        ):
            member = await client_with(stack, identity_database, Role.MEMBER)
            yield Whole(stack, every, member)


async def test_a_server_is_added_read_changed_used_and_deleted(whole: Whole) -> None:
    body = {"slug": "every", "url": whole.every.url, "is_enabled": True}
    made = await whole.admin.request("POST", SERVERS, body)
    server = made.json()
    path = f"{SERVERS}/{server['id']}"
    assert (made.status, made.headers["location"], made.headers["etag"]) == (201, path, '"1"')
    assert (server["display_name"], server["availability"], server["url"]) == (
        "every",
        "default_off",
        whole.every.url,
    )

    stale = {"If-Match": '"7"'}
    refused = await whole.admin.request("PATCH", path, {"description": "x"}, headers=stale)
    changed = await whole.admin.request(
        "PATCH", path, {"description": "x"}, headers={"If-Match": '"1"'}
    )
    assert (refused.status, refused.json()["code"]) == (412, "VERSION_CONFLICT")
    assert (changed.status, changed.json()["version"], changed.json()["url"]) == (
        200,
        2,
        whole.every.url,
    )

    probed = await whole.admin.request("POST", f"{path}/probe")
    assert probed.json()["state"] == "ready"
    assert [phase["kind"] for phase in probed.json()["phases"]][-1] == "list_tools"
    drafted = await whole.admin.request("POST", f"{path}/probe?draft=0")
    assert (drafted.status, drafted.json()["errors"][0]["code"]) == (422, "UNKNOWN_PARAMETER")
    unknown = await whole.member.request("POST", f"{path}/prompts/get", {"name": "x"})
    assert (unknown.status, unknown.json()["code"]) == (422, "REQUEST_REFUSED")
    assert "server refuses: Internal server error" in unknown.json()["detail"]

    tools = await whole.member.request("GET", f"{path}/tools")
    assert [tool["original_name"] for tool in tools.json()["items"]] == [
        "echo",
        "grow",
        "long_text",
        "picture",
        "whoami",
    ]
    called = await whole.member.request(
        "POST", f"{path}/tools/call", {"original_name": "echo", "arguments": {"text": "hi"}}
    )
    assert (called.json()["outcome"], called.json()["content"]) == (
        "succeeded",
        [{"type": "text", "text": "hi"}],
    )
    calls = (await whole.member.request("GET", "/api/v1/mcp/calls")).json()["items"]
    assert [(call["slug"], call["original_name"]) for call in calls] == [("every", "echo")]

    gone = await whole.admin.request("DELETE", path)
    assert gone.status == 204
    assert (await whole.admin.request("GET", path)).status == 404


async def test_members_see_no_addresses_and_change_nothing(whole: Whole) -> None:
    body = {
        "slug": "every",
        "url": whole.every.url,
        "is_enabled": True,
        "auth_kind": "custom_headers",
        "credentials": {"custom_headers": {"headers": {"X-Key": SECRET}}},
    }
    made = await whole.admin.request("POST", SERVERS, body)
    path = f"{SERVERS}/{made.json()['id']}"
    listed = (await whole.member.request("GET", SERVERS)).json()["items"]
    assert [(each["slug"], each["url"], each["transport"]) for each in listed] == [
        ("every", None, None)
    ]
    assert listed[0]["stored_credentials"] is None
    assert made.json()["stored_credentials"]["custom_header_names"] == ["X-Key"]
    for verb, where in (("POST", SERVERS), ("PATCH", path), ("DELETE", path)):
        refused = await whole.member.request(verb, where, None if verb == "DELETE" else body)
        assert refused.status == 403
    called = await whole.member.request(
        "POST", f"{path}/tools/call", {"original_name": "whoami", "arguments": {}}
    )
    assert called.json()["content"] == [{"type": "text", "text": SECRET}]
    assert SECRET not in made.body.decode() + str(listed)


async def test_a_server_is_restricted_to_users_and_groups_that_exist(whole: Whole) -> None:
    unknown = "01900000-0000-7000-8000-0000000000ff"
    added = await whole.admin.request("POST", "/api/v1/users", NEW_USER)
    assert added.status == 201, added.body
    user = added.json()["id"]
    group = (await whole.admin.request("POST", "/api/v1/groups", {"name": "one"})).json()["id"]
    known = {"user_ids": [user], "group_ids": [group]}
    body = {"slug": "every", "url": whole.every.url}

    made = await whole.admin.request("POST", SERVERS, {**body, **known})
    path = f"{SERVERS}/{made.json()['id']}"
    refusals = [
        await whole.admin.request("POST", SERVERS, {**body, "slug": "s", "user_ids": [group]}),
        await whole.admin.request("PATCH", path, {"user_ids": [user, unknown]}),
        await whole.admin.request("PATCH", path, {"group_ids": [group, unknown]}),
    ]

    assert made.status == 201, made.body
    assert [each.status for each in refusals] == [422, 422, 422]
    problems = [each.json()["errors"][0] for each in refusals]
    assert [each["pointer"] for each in problems] == ["/user_ids", "/user_ids", "/group_ids"]
    named = zip(problems, (group, unknown, unknown), strict=True)
    assert all(wrong in str(each) for each, wrong in named)

    # Who is stored already does not stand in the way of other changes.
    await whole.admin.request("DELETE", f"/api/v1/groups/{group}")
    kept = await whole.admin.request("PATCH", path, {"user_ids": [], "group_ids": [group]})
    assert (kept.status, kept.json()["group_ids"]) == (200, [group])


async def test_every_problem_names_its_place_in_the_body(whole: Whole) -> None:
    body = {"slug": "find", "url": "ftp://x", "tool_allow_list": ["a"], "tool_deny_list": ["a"]}
    refused = await whole.admin.request("POST", SERVERS, body)
    pointers = {each["pointer"] for each in refused.json()["errors"]}
    assert (refused.status, pointers) == (422, {"/slug", "/url", "/tool_deny_list"})


async def test_every_oauth_setting_that_cannot_work_names_its_place(whole: Whole) -> None:
    oauth = {
        "issuer": "http://login.example",
        "token_url": "https://login.example/token",
        "scopes": ["good", "two words"],
    }
    body = {"slug": "every", "url": whole.every.url, "auth_kind": "oauth2", "oauth": oauth}
    refused = await whole.admin.request("POST", SERVERS, body)
    misspelt = {**body, "oauth": {"clientid": "us"}}
    unknown = await whole.admin.request("POST", SERVERS, misspelt)
    made = (await whole.admin.request("POST", SERVERS, {**body, "oauth": {}})).json()
    changed = await whole.admin.request("PATCH", f"{SERVERS}/{made['id']}", {"oauth": oauth})
    pointers = {
        "/oauth/issuer",
        "/oauth/client_id",
        "/oauth/authorization_url",
        "/oauth/scopes/1",
    }
    for each in (refused, changed):
        assert each.status == 422
        assert {error["pointer"] for error in each.json()["errors"]} == pointers
    assert (unknown.status, unknown.json()["errors"][0]["pointer"]) == (422, "/oauth/clientid")


async def test_own_values_are_stored_and_never_shown(whole: Whole) -> None:
    body = {
        "slug": "every",
        "url": whole.every.url,
        "is_enabled": True,
        "user_values": [{"header": "X-Key", "description": "Your key."}],
    }
    server = (await whole.admin.request("POST", SERVERS, body)).json()
    path = f"{SERVERS}/{server['id']}"
    before = (await whole.member.request("GET", path)).json()
    stored = await whole.member.request("PUT", f"{path}/me/values", {"values": {"X-Key": SECRET}})
    called = await whole.member.request(
        "POST", f"{path}/tools/call", {"original_name": "whoami", "arguments": {}}
    )
    assert before["authorization_status"] == "missing_user_values"
    assert (stored.json()["authorization_status"], stored.json()["own_value_headers"]) == (
        "not_required",
        ["X-Key"],
    )
    assert SECRET not in stored.body.decode()
    assert called.json()["content"][0]["text"] == SECRET
    assert (await whole.member.request("DELETE", f"{path}/me/values")).status == 204


async def test_a_new_server_is_off_and_seen_by_administrators_only(whole: Whole) -> None:
    made = await whole.admin.request("POST", SERVERS, {"slug": "every", "url": whole.every.url})
    assert (made.status, made.json()["is_enabled"]) == (201, False)
    path = f"{SERVERS}/{made.json()['id']}"
    by_admin = (await whole.admin.request("GET", SERVERS)).json()["items"]
    by_member = (await whole.member.request("GET", SERVERS)).json()["items"]
    refused = await whole.member.request("GET", path)
    assert ([each["slug"] for each in by_admin], by_member) == (["every"], [])
    assert (refused.status, refused.json()["code"]) == (404, "SERVER_NOT_FOUND")


@pytest.mark.parametrize(
    "setting",
    ["transport", "auth_kind", "availability", "approval_policy", "pin_policy", "tool_search"],
)
async def test_an_unknown_kind_is_refused_and_stores_nothing(whole: Whole, setting: str) -> None:
    body = {"slug": "every", "url": whole.every.url}
    refused = await whole.admin.request("POST", SERVERS, {**body, setting: "unheard-of"})
    assert (await whole.admin.request("GET", SERVERS)).json()["items"] == []
    made = (await whole.admin.request("POST", SERVERS, body)).json()
    path = f"{SERVERS}/{made['id']}"
    unchanged = await whole.admin.request("PATCH", path, {setting: "unheard-of"})
    for each in (refused, unchanged):
        assert (each.status, [problem["pointer"] for problem in each.json()["errors"]]) == (
            422,
            [f"/{setting}"],
        )
    after = (await whole.admin.request("GET", path)).json()
    assert (after[setting], after["version"]) == (made[setting], 1)


async def test_members_see_neither_clients_nor_endpoints_nor_scopes_nor_headers(
    whole: Whole,
) -> None:
    oauth = {
        "client_id": "hidden-client",
        "issuer": "https://hidden-issuer.example",
        "authorization_url": "https://hidden-issuer.example/authorize",
        "token_url": "https://hidden-issuer.example/token",
        "revocation_url": "https://hidden-issuer.example/revoke",
        "scopes": ["hidden-scope"],
    }
    with_oauth: dict[str, Any] = {"slug": "one", "auth_kind": "oauth2", "oauth": oauth}
    with_key: dict[str, Any] = {
        "slug": "two",
        "auth_kind": "api_key",
        "api_key_header": "X-Hidden-Header",
    }
    credentials = [{"oauth_client_secret": SECRET}, {"api_key": SECRET}]
    for settings, secret in zip((with_oauth, with_key), credentials, strict=True):
        body = {
            "url": "https://hidden-server.example/mcp",
            "is_enabled": True,
            "credentials": secret,
        }
        made = await whole.admin.request("POST", SERVERS, {**body, **settings})
        assert made.status == 201, made.body
    full = await whole.admin.request("GET", SERVERS)
    listed = await whole.member.request("GET", SERVERS)
    each_alone = [
        await whole.member.request("GET", f"{SERVERS}/{each['id']}")
        for each in listed.json()["items"]
    ]
    text = "".join(reply.body.decode() for reply in (listed, *each_alone)).lower()
    assert [each["slug"] for each in listed.json()["items"]] == ["one", "two"]
    assert ("hidden" in text, SECRET in text) == (False, False)
    names = ("url", "transport", "oauth", "api_key_header", "stored_credentials")
    for shown in (*listed.json()["items"], *[reply.json() for reply in each_alone]):
        assert [shown[name] for name in names] == [None] * len(names)
    assert full.json()["items"][0]["oauth"] == oauth
    assert (full.json()["items"][1]["api_key_header"], SECRET in full.body.decode()) == (
        "X-Hidden-Header",
        False,
    )


async def test_a_patch_keeps_secrets_an_empty_text_clears_and_another_kind_clears_the_former(
    whole: Whole,
) -> None:
    body = {
        "slug": "every",
        "url": whole.every.url,
        "description": "Old.",
        "auth_kind": "oauth2",
        "oauth": {"client_id": "client", "scopes": ["a"]},
        "credentials": {"oauth_client_secret": SECRET},
    }
    made = (await whole.admin.request("POST", SERVERS, body)).json()
    path = f"{SERVERS}/{made['id']}"

    async def patched(change: Mapping[str, object]) -> dict[str, Any]:
        reply = await whole.admin.request("PATCH", path, change)
        assert reply.status == 200, reply.body
        found: dict[str, Any] = reply.json()
        return found

    kept = await patched({"display_name": "New"})
    assert (kept["stored_credentials"]["has_oauth_client_secret"], kept["oauth"]["client_id"]) == (
        True,
        "client",
    )
    cleared = await patched({"description": ""})
    assert cleared["description"] == ""
    assert cleared["stored_credentials"]["has_oauth_client_secret"]
    without_secret = await patched({"credentials": {"oauth_client_secret": ""}})
    assert not without_secret["stored_credentials"]["has_oauth_client_secret"]
    without_client = await patched({"oauth": {"client_id": "", "scopes": ["a"]}})
    assert (without_client["oauth"]["client_id"], without_client["oauth"]["scopes"]) == ("", ["a"])

    oauth = {"client_id": "client"}
    await patched({"oauth": oauth, "credentials": {"oauth_client_secret": SECRET}})
    key = {"auth_kind": "api_key", "api_key_header": "X-Key", "credentials": {"api_key": SECRET}}
    with_key = await patched(key)
    assert (with_key["oauth"], with_key["stored_credentials"]) == (
        None,
        {"has_oauth_client_secret": False, "has_api_key": True, "custom_header_names": []},
    )
    headers = {"custom_headers": {"headers": {"X-Other": SECRET}}}
    with_headers = await patched({"auth_kind": "custom_headers", "credentials": headers})
    assert (with_headers["api_key_header"], with_headers["stored_credentials"]) == (
        None,
        {
            "has_oauth_client_secret": False,
            "has_api_key": False,
            "custom_header_names": ["X-Other"],
        },
    )
    without = await patched({"auth_kind": "none"})
    assert without["stored_credentials"] == {
        "has_oauth_client_secret": False,
        "has_api_key": False,
        "custom_header_names": [],
    }
