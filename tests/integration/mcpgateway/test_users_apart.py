"""Users of one server under load: none of them gets a credential or an answer of another."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.identity import Role, User, UserId
from parley.rpc import acting_for
from support.mcpgateway.everything_server import EverythingServer, everything_server
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.server_calls import called

pytestmark = pytest.mark.slow

OTHER = User(UserId("01900000-0000-7000-8000-00000000000c"), Role.MEMBER)
CALLS = 300
CALLS_FULL_SIZE = 10_000
USERS = {"of-admin": ADMIN, "of-member": MEMBER, "of-other": OTHER}
AT_ONCE = 4


@pytest.fixture
async def every() -> AsyncIterator[EverythingServer]:
    """Give a server that tells each caller which credential came."""
    async with everything_server() as server:
        yield server


@pytest.fixture
async def gateway(
    tmp_path: Path, mcp_database: str, every: EverythingServer
) -> AsyncIterator[McpGateway]:
    """Give a mcpgateway that may reach the server."""
    async with mcp_gateway(tmp_path, mcp_database, allowed=every.place) as running:
        yield running


async def answers_of(
    gateway: McpGateway, server_id: str, user: User, value: str, part: int, calls: int
) -> Counter[str]:
    """Call one after the other, and count the credentials that the server saw."""
    seen: Counter[str] = Counter()
    for number in range(calls):
        result = await called(gateway, user, server_id, "whoami", f"{value}-{part}-{number}")
        (content,) = json.loads(result.content_json)
        seen[content["text"]] += 1
    return seen


async def test_users_under_load_get_their_own_answers_only(
    gateway: McpGateway, every: EverythingServer, request: pytest.FixtureRequest
) -> None:
    calls = CALLS_FULL_SIZE if request.config.getoption("--full-size") else CALLS
    each = calls // (len(USERS) * AT_ONCE)
    slot = server_pb2.UserValueSlot(header="X-Key", description="Your key.")
    settings = server_pb2.McpServerSettings(
        slug="every", url=every.url, is_enabled=True, user_values=[slot]
    )
    with acting_for(ADMIN):
        made = await gateway.servers.CreateServer(
            api.CreateServerRequest(request_id="create", settings=settings)
        )
    server_id = made.server.server_id
    for value, user in USERS.items():
        with acting_for(user):
            await gateway.servers.SetUserValues(
                api.SetUserValuesRequest(
                    request_id="values", server_id=server_id, values={"X-Key": value}
                )
            )
    async with asyncio.TaskGroup() as tasks:
        running = [
            (value, tasks.create_task(answers_of(gateway, server_id, user, value, part, each)))
            for value, user in USERS.items()
            for part in range(AT_ONCE)
        ]
    assert [task.result() for _, task in running] == [
        Counter({value: each}) for value, _ in running
    ]
    assert Counter(every.seen) == Counter(dict.fromkeys(USERS, each * AT_ONCE))
