"""Stored credentials of an MCP server are sent to the origin that they were given for only."""

from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.rpc import Problem, acting_for, problem_of
from support.mcpgateway.everything_server import everything_server
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.server_calls import called

SECRET = "s3cret-s3cret"
ISSUER = "https://login.example"
ENDPOINTS = {"authorization_url": f"{ISSUER}/agree", "token_url": f"{ISSUER}/token"}
OF_KIND: dict[str, dict[str, Any]] = {"OAUTH2": {"oauth": server_pb2.OAuthSettings(client_id="us")}}


async def created(gateway: McpGateway, kind: str, **settings: Any) -> server_pb2.McpServer:
    fields: dict[str, Any] = {
        "url": "https://mcp.example/mcp",
        **OF_KIND.get(kind, {}),
        **settings,
    }
    request = api.CreateServerRequest(
        request_id="create",
        settings=server_pb2.McpServerSettings(
            slug="keyed",
            auth_kind=server_pb2.AuthKind.Value(f"AUTH_KIND_{kind}"),
            is_enabled=True,
            **fields,
        ),
        credentials=credentials_of(kind, SECRET),
    )
    with acting_for(ADMIN):
        return (await gateway.servers.CreateServer(request)).server


def a_client(**settings: str) -> server_pb2.OAuthSettings:
    return server_pb2.OAuthSettings(client_id="us", **settings)


def credentials_of(kind: str, secret: str) -> server_pb2.McpServerCredentials:
    match kind:
        case "API_KEY":
            return server_pb2.McpServerCredentials(api_key=secret)
        case "OAUTH2":
            return server_pb2.McpServerCredentials(oauth_client_secret=secret)
        case _:
            headers = server_pb2.CustomHeaders(headers={"X-Key": secret})
            return server_pb2.McpServerCredentials(custom_headers=headers)


async def changed(
    gateway: McpGateway,
    server: server_pb2.McpServer,
    credentials: server_pb2.McpServerCredentials | None = None,
    **settings: Any,
) -> server_pb2.McpServer:
    request = api.UpdateServerRequest(
        request_id="change",
        server_id=server.server_id,
        settings=server_pb2.McpServerSettings(**settings),
        credentials=credentials,
    )
    request.update_mask.paths.extend(settings)
    with acting_for(ADMIN):
        return (await gateway.servers.UpdateServer(request)).server


async def refusal(
    gateway: McpGateway, server: server_pb2.McpServer, **settings: Any
) -> tuple[Problem, server_pb2.McpServer]:
    """Return why a change is refused, and the server as it is stored afterwards."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await changed(gateway, server, **settings)
    with acting_for(ADMIN):
        read = await gateway.servers.GetServer(api.GetServerRequest(server_id=server.server_id))
    return problem_of(caught.value), read.server


@pytest.mark.parametrize("kind", ["API_KEY", "CUSTOM_HEADERS", "OAUTH2"])
@pytest.mark.parametrize(
    "url",
    [
        "https://other.example/mcp",
        "http://mcp.example/mcp",
        "https://mcp.example:8443/mcp",
        "https://mcp.example.other.example/mcp",
    ],
)
async def test_stored_credentials_are_not_sent_to_another_origin(
    gateway: McpGateway, kind: str, url: str
) -> None:
    server = await created(gateway, kind)

    refused, after = await refusal(gateway, server, url=url)

    assert (refused.status, refused.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "CREDENTIALS_NEEDED",
    )
    assert [each.field for each in refused.violations] == ["credentials"]
    assert refused.metadata["old_origin"] == "https://mcp.example:443"
    assert after == server


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"issuer": "https://other.example"}),
        ({"issuer": ISSUER}, {"issuer": "https://other.example"}),
        ({"issuer": ISSUER}, {"issuer": ""}),
        ({"issuer": ISSUER}, {**ENDPOINTS, "token_url": "https://other.example/token"}),
        (ENDPOINTS, {**ENDPOINTS, "token_url": "https://other.example/token"}),
        (ENDPOINTS, {**ENDPOINTS, "revocation_url": "https://other.example/revoke"}),
        (ENDPOINTS, {}),
    ],
)
async def test_the_secret_of_an_oauth_client_is_not_sent_to_another_origin(
    gateway: McpGateway, before: dict[str, str], after: dict[str, str]
) -> None:
    server = await created(gateway, "OAUTH2", oauth=a_client(**before))

    refused, stored = await refusal(gateway, server, oauth=a_client(**after))

    assert (refused.reason, stored) == ("CREDENTIALS_NEEDED", server)


async def test_another_path_of_the_same_origin_keeps_the_credentials(
    gateway: McpGateway, caplog: pytest.LogCaptureFixture
) -> None:
    server = await created(gateway, "API_KEY")

    moved = await changed(gateway, server, url="https://MCP.example:443/v2/mcp")

    assert moved.stored_credentials.has_api_key
    assert moved.settings.url == "https://MCP.example:443/v2/mcp"
    assert origin_changes(caplog) == []


async def test_an_issuer_that_stays_keeps_the_secret_of_its_client(gateway: McpGateway) -> None:
    oauth = server_pb2.OAuthSettings(client_id="us", issuer=ISSUER)
    server = await created(gateway, "OAUTH2", oauth=oauth)

    moved = await changed(gateway, server, url="https://other.example/mcp")

    assert moved.stored_credentials.has_oauth_client_secret


async def test_credentials_given_with_the_new_host_replace_the_stored_ones(
    tmp_path: Path, mcp_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        everything_server() as every,
        mcp_gateway(tmp_path, mcp_database, allowed=every.place) as gateway,
    ):
        server = await created(gateway, "CUSTOM_HEADERS")

        new = credentials_of("CUSTOM_HEADERS", "of-the-new-host")
        await changed(gateway, server, new, url=every.url)

        await called(gateway, MEMBER, server.server_id, "whoami")
        assert every.seen == ["of-the-new-host"]
        [fact] = origin_changes(caplog)
        assert (fact["user_id"], fact["server_id"]) == (ADMIN.id, server.server_id)
        assert fact["old_origin"] == "https://mcp.example:443"
        assert fact["new_origin"] == f"http://{every.place}"
        assert "of-the-new-host" not in str(fact)


async def test_the_secret_of_a_client_can_be_removed_with_the_move(gateway: McpGateway) -> None:
    server = await created(gateway, "OAUTH2")

    nothing = server_pb2.McpServerCredentials()
    moved = await changed(gateway, server, nothing, url="https://other.example/mcp")

    assert not moved.stored_credentials.has_oauth_client_secret


def origin_changes(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    audited = [vars(each) for each in caplog.records if each.name == "parley.audit"]
    return [each for each in audited if each["action"] == "mcp_server.origin_changed"]
