"""The server service over gRPC."""

import grpc
import pytest

from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.identity import User
from parley.rpc import Problem, acting_for, problem_of
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway

SECRET = "s3cret-s3cret"


def a_request(request_id: str = "r1", **fields: object) -> api.CreateServerRequest:
    given = {
        "slug": "linear",
        "display_name": "Linear",
        "url": "https://mcp.example/mcp",
        "transport": server_pb2.TRANSPORT_STREAMABLE_HTTP,
        "auth_kind": server_pb2.AUTH_KIND_API_KEY,
        "availability": server_pb2.AVAILABILITY_DEFAULT_OFF,
        **fields,
    }
    return api.CreateServerRequest(
        request_id=request_id,
        settings=server_pb2.McpServerSettings(**given),  # type: ignore[arg-type]
        credentials=server_pb2.McpServerCredentials(api_key=SECRET),
    )


async def create(gateway: McpGateway, request: api.CreateServerRequest) -> server_pb2.McpServer:
    with acting_for(ADMIN):
        return (await gateway.servers.CreateServer(request)).server


async def listed(gateway: McpGateway, user: User) -> list[server_pb2.McpServer]:
    with acting_for(user):
        response = await gateway.servers.ListServers(api.ListServersRequest())
    return list(response.servers)


async def problem_with(call: object) -> Problem:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call  # type: ignore[misc]
    return problem_of(caught.value)


async def test_a_new_server_is_off_and_its_secret_is_never_answered(gateway: McpGateway) -> None:
    server = await create(gateway, a_request())

    assert (server.version, server.settings.is_enabled) == (1, False)
    assert server.stored_credentials == server_pb2.StoredCredentials(has_api_key=True)
    assert server.settings.limits.connect_timeout_ms == 10_000
    assert SECRET not in str(server)
    assert server in await listed(gateway, ADMIN)


async def test_members_see_enabled_servers_only_and_not_their_addresses(
    gateway: McpGateway,
) -> None:
    hidden = await create(gateway, a_request())
    shown = await create(gateway, a_request("r2", slug="shown", is_enabled=True))

    seen = await listed(gateway, MEMBER)
    with acting_for(MEMBER):
        one = await gateway.servers.GetServer(api.GetServerRequest(server_id=shown.server_id))
        refused = await problem_with(
            gateway.servers.GetServer(api.GetServerRequest(server_id=hidden.server_id))
        )

    assert [server.settings.slug for server in seen] == ["demo", "shown"]
    assert one.server in seen
    assert (one.server.settings.url, one.server.HasField("stored_credentials")) == ("", False)
    assert refused.reason == "SERVER_NOT_FOUND"


async def test_every_problem_of_a_request_is_told_at_once(gateway: McpGateway) -> None:
    request = a_request(slug="find", url="nope", tool_allow_list=["a"], tool_deny_list=["a"])

    with acting_for(ADMIN):
        problem = await problem_with(gateway.servers.CreateServer(request))

    assert (problem.status, problem.reason) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
    )
    assert {violation.field for violation in problem.violations} == {
        "settings.slug",
        "settings.url",
        "settings.tool_deny_list",
    }


async def test_a_repeated_request_returns_the_first_server(gateway: McpGateway) -> None:
    first = await create(gateway, a_request())
    again = await create(gateway, a_request())
    with acting_for(ADMIN):
        reused = await problem_with(gateway.servers.CreateServer(a_request(display_name="Other")))
        taken = await problem_with(gateway.servers.CreateServer(a_request("r2")))

    assert again == first
    assert (reused.reason, taken.reason) == ("REQUEST_ID_REUSED", "SLUG_TAKEN")


async def test_members_may_not_create(gateway: McpGateway) -> None:
    with acting_for(MEMBER):
        problem = await problem_with(gateway.servers.CreateServer(a_request()))

    assert problem.status == grpc.StatusCode.PERMISSION_DENIED


async def test_servers_are_listed_in_pages(gateway: McpGateway) -> None:
    for number in range(3):
        slug = f"s{number}"
        await create(gateway, a_request(slug, slug=slug, display_name=slug))
    names: list[str] = []
    token = ""
    with acting_for(ADMIN):
        while not names or token:
            page = await gateway.servers.ListServers(
                api.ListServersRequest(page_size=2, page_token=token)
            )
            names += [server.settings.display_name for server in page.servers]
            token = page.next_page_token
        refused = await problem_with(
            gateway.servers.ListServers(api.ListServersRequest(page_token="nonsense"))
        )

    assert names == ["Demo", "s0", "s1", "s2"]
    assert refused.reason == "INVALID_REQUEST"


async def test_deleting_is_for_good_and_may_be_repeated(gateway: McpGateway) -> None:
    server = await create(gateway, a_request())
    request = api.DeleteServerRequest(request_id="d", server_id=server.server_id)

    with acting_for(ADMIN):
        await gateway.servers.DeleteServer(request)
        await gateway.servers.DeleteServer(request)

    assert [each.settings.slug for each in await listed(gateway, ADMIN)] == ["demo"]
