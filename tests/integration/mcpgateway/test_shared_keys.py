"""Two users of a server that everyone uses with one key, and which keeps sessions: all apart."""

import asyncio
import json
from pathlib import Path

from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.identity import Role, User, UserId
from parley.rpc import acting_for
from support.mcpgateway.caller_server import CALLER, name_of
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.server_calls import called, listed
from support.mcpgateway.visitor_server import SAID, visitor_server

OTHER = User(UserId("01900000-0000-7000-8000-00000000000c"), Role.MEMBER)
USERS = (MEMBER, OTHER)
KEY = "the-key-of-everyone"
CALLS = 20


async def create(gateway: McpGateway, url: str) -> str:
    settings = server_pb2.McpServerSettings(
        slug="visited",
        url=url,
        is_enabled=True,
        auth_kind=server_pb2.AUTH_KIND_API_KEY,
        api_key_header="X-Key",
        # It describes its tools differently in each session.
        pin_policy=server_pb2.PIN_POLICY_OFF,
    )
    with acting_for(ADMIN):
        made = await gateway.servers.CreateServer(
            api.CreateServerRequest(
                request_id="create",
                settings=settings,
                credentials=server_pb2.McpServerCredentials(api_key=KEY),
            )
        )
    return str(made.server.server_id)


async def texts_of(gateway: McpGateway, server_id: str, user: User) -> set[str]:
    """Call and list several times; return by which names the server called the user."""
    names = set[str]()
    for number in range(CALLS):
        said = f"{SAID}{user.id}"
        result = await called(gateway, user, server_id, "echo", f"{user.id}-{number}", text=said)
        (part,) = json.loads(result.content_json)
        assert part["text"] == said
        tools = (await listed(gateway, user, server_id)).tools
        echo = next(tool for tool in tools if tool.original_name == "echo")
        names.add(echo.description.removeprefix("Repeat a text for ").rstrip("."))
    return names


async def test_users_with_one_key_share_no_session_no_cookie_and_no_catalogue(
    tmp_path: Path, mcp_database: str
) -> None:
    async with (
        asyncio.timeout(60),
        visitor_server() as server,
        mcp_gateway(tmp_path, mcp_database, allowed=server.place) as gateway,
    ):
        server_id = await create(gateway, server.url)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(texts_of(gateway, server_id, user)) for user in USERS]

    sessions = [server.sessions[user.id] for user in USERS]
    assert [len(each) for each in sessions] == [1, 1]
    assert sessions[0].isdisjoint(sessions[1])
    assert [task.result() for task in running] == [
        {name_of(session)} for each in sessions for session in each
    ]
    assert set(server.keys) == {KEY}
    assert server.cookies == []
    assert CALLER not in str([task.result() for task in running])
