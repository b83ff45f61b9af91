"""Many calls at once through a whole mcpgateway, which has few connections to its database."""

import asyncio
from collections import Counter
from pathlib import Path

import grpc
import msgspec
import pytest

from mcpgateway.client.content import ToolAnswer
from mcpgateway.runtime.call_executor import CallExecutor, JournaledCall
from mcpgateway.runtime.call_starter import CallStarter
from mcpgateway.runtime.journal import Journal
from mcpgateway.runtime.running_call import PreparedCall
from mcpgateway.runtime.start_queue import StartQueue
from mcpgateway.servers.domain import Limits, Target
from mcpgateway.servers.errors import ExecutionIdReused, Overloaded, ToolNotFound
from mcpgateway.servers.known_servers import KnownServers
from mcpgateway.servers.problems import ERRORS
from mcpgateway.servers.store import Servers
from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import server_pb2, tool_pb2
from parley.api.mcp.v1 import server_service_pb2 as servers_api
from parley.clock import FakeClock
from parley.identity import Caller, Role, User, UserId
from parley.postgres import Database
from parley.rpc import acting_for, problem_of
from parley.rpc.call import serving
from parley.rpc.problem_table import Problems
from support.host.supervised import supervision
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.scripted_upstream import ScriptedCall, ScriptedUpstream
from support.mcpgateway.values import a_server, a_target, an_order

CALLS = 200
OTHER_SERVER = "01900000-0000-7000-8000-000000000002"
TOOL = "get_current_time"
ARGUMENTS_JSON = msgspec.json.encode({"timezone": "UTC"})
CONTEXT = api.ChatContext(chat_id="chat", root_chat_id="chat")
ANN = Caller(None, User(UserId("ann"), Role.MEMBER), frozenset(), "1", "robot")


async def created(gateway: McpGateway, url: str) -> str:
    """Add a server whose limits allow all calls at once, and return its id."""
    settings = server_pb2.McpServerSettings(
        slug="time",
        url=url,
        is_enabled=True,
        limits=server_pb2.McpServerLimits(calls_max=1000, calls_per_user_max=1000),
    )
    with acting_for(ADMIN):
        made = await gateway.servers.CreateServer(
            servers_api.CreateServerRequest(request_id="create", settings=settings)
        )
    return str(made.server.server_id)


async def generation_of(gateway: McpGateway, server_id: str) -> str:
    with acting_for(MEMBER):
        listing = await gateway.runtime.ListTools(
            api.ListToolsRequest(context=CONTEXT, server_ids=[server_id])
        )
    assert TOOL in {tool.original_name for tool in listing.tools}
    return str(listing.journal_generation)


async def outcome_of(
    gateway: McpGateway, server_id: str, generation: str, number: int, user: User = MEMBER
) -> str:
    """Call as chatd does, each for another chat; return the outcome, or why there is none."""
    chat_id = f"chat-{number}"
    request = api.CallToolRequest(
        key=api.CallKey(
            execution_id=f"call-{number}",
            chat_id=chat_id,
            owner_epoch=1,
            journal_generation=generation,
        ),
        context=api.ChatContext(chat_id=chat_id, root_chat_id=chat_id),
        server_id=server_id,
        original_name=TOOL,
        arguments_json=ARGUMENTS_JSON,
    )
    try:
        with acting_for(user):
            events = [each async for each in gateway.runtime.CallTool(request, timeout=120)]
    except grpc.aio.AioRpcError as error:
        return problem_of(error).reason
    return str(tool_pb2.CallOutcome.Name(events[-1].result.outcome))


@pytest.mark.slow
async def test_two_hundred_calls_at_once_succeed(
    tmp_path: Path, mcp_database: str, demo_url: str, database: Database
) -> None:
    async with (
        asyncio.timeout(120),
        mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8") as gateway,
    ):
        server_id = await created(gateway, demo_url)
        generation = await generation_of(gateway, server_id)
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(
                    outcome_of(gateway, server_id, generation, number, (ADMIN, MEMBER)[number % 2])
                )
                for number in range(CALLS)
            ]
    assert Counter(task.result() for task in running) == {"CALL_OUTCOME_SUCCEEDED": CALLS}
    stored = await database.pool.fetchval(
        "SELECT count(*) FROM mcp.calls WHERE outcome = 'succeeded'"
    )
    assert stored == CALLS


async def test_a_server_that_another_process_switched_off_is_not_called(
    tmp_path: Path, mcp_database: str, demo_url: str, database: Database
) -> None:
    async with mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8") as gateway:
        server_id = await created(gateway, demo_url)
        generation = await generation_of(gateway, server_id)
        # Without a notice, as if it was lost: this process still knows the server as switched on.
        await database.pool.execute(
            "UPDATE mcp.servers SET is_enabled = false, version = version + 1"
        )
        refused = await outcome_of(gateway, server_id, generation, 1)
    assert refused == "SERVER_DISABLED"
    assert await database.pool.fetchval("SELECT count(*) FROM mcp.calls") == 0


async def test_a_call_whose_turn_does_not_come_is_not_made(
    journal: Journal, servers: Servers
) -> None:
    upstream, queue = ScriptedUpstream(), StartQueue(places_max=1, places_per_user_max=1)

    async def prepare() -> PreparedCall:
        return PreparedCall(a_target())

    async with CallExecutor.open(journal, upstream, supervision(FakeClock())) as executor:
        starter = CallStarter(executor, queue, KnownServers(servers, FakeClock()))
        with serving(ANN, method="test", timeout_s=0.05):
            async with queue.place("bob", None):
                with pytest.raises(Overloaded) as refused:
                    await starter.start(an_order(), prepare, lambda _: an_order(), may_ask=False)
    assert (await journal.find(an_order().key), upstream.called) == (None, [])
    problem = Problems(ERRORS).of(refused.value)
    assert problem is not None
    assert (problem.status, problem.reason) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "TOO_MANY_CALLS",
    )
    assert problem.retry_after_s


async def test_a_call_that_an_earlier_request_started_is_not_refused_as_not_made(
    journal: Journal, servers: Servers
) -> None:
    released = asyncio.Event()
    upstream = ScriptedUpstream(calls=[ScriptedCall(ToolAnswer(False, ()), released=released)])
    queue = StartQueue(places_max=1, places_per_user_max=1, waiting_max=0)

    async def prepare() -> PreparedCall:
        return PreparedCall(a_target())

    async with CallExecutor.open(journal, upstream, supervision(FakeClock())) as executor:
        starter = CallStarter(executor, queue, KnownServers(servers, FakeClock()))

        async def start(**values: str) -> JournaledCall:
            order = an_order(**values)
            return await starter.start(order, prepare, lambda _: order, may_ask=False)

        async def start_of_another() -> None:
            with pytest.raises(ExecutionIdReused):
                await start(caller="token:1")

        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            first, again = tasks.create_task(start()), tasks.create_task(start())
            tasks.create_task(start_of_another())
        async with queue.place("bob", None):
            later = await start()
        released.set()
    assert [each.is_attached for each in (first.result(), again.result(), later)] == [
        False,
        True,
        True,
    ]
    assert len(upstream.called) == 1


async def test_calls_that_wait_for_a_full_server_keep_no_place_from_others(
    journal: Journal, servers: Servers
) -> None:
    full = a_target(a_server(limits=Limits(calls_per_user_max=1)))
    other = a_target(a_server(OTHER_SERVER))
    answer = ToolAnswer(False, ())
    upstream = ScriptedUpstream(
        calls=[ScriptedCall(answer, released=asyncio.Event()), ScriptedCall(answer)]
    )
    clock, queue = FakeClock(), StartQueue(places_max=1, places_per_user_max=2)

    async def start(name: str, target: Target) -> None:
        async def prepare() -> PreparedCall:
            return PreparedCall(target)

        order = an_order(name, server_id=target.server.id, chat_id=name)
        await starter.start(order, prepare, lambda _: order, may_ask=False)

    async with (
        asyncio.timeout(20),
        CallExecutor.open(journal, upstream, supervision(clock)) as executor,
        asyncio.TaskGroup() as tasks,
    ):
        starter = CallStarter(executor, queue, KnownServers(servers, clock))
        await start("runs", full)
        waiting = tasks.create_task(start("waits", full))
        await clock.until_sleeping()
        # The only place is free, although the clock stands still for the call that waits.
        await start("other", other)
        assert not waiting.done()
        waiting.cancel()


async def test_calls_whose_server_is_slow_to_list_its_tools_keep_no_place_from_other_users(
    journal: Journal, servers: Servers
) -> None:
    preparing, listed = asyncio.Event(), asyncio.Event()
    queue = StartQueue(places_max=1, places_per_user_max=1)

    async def prepare() -> PreparedCall:
        preparing.set()
        await listed.wait()
        raise ToolNotFound(OTHER_SERVER, TOOL)

    async def start() -> None:
        with pytest.raises(ToolNotFound):
            await starter.start(an_order(), prepare, lambda _: an_order(), may_ask=False)

    async with (
        asyncio.timeout(20),
        CallExecutor.open(journal, ScriptedUpstream(), supervision(FakeClock())) as executor,
        asyncio.TaskGroup() as tasks,
    ):
        starter = CallStarter(executor, queue, KnownServers(servers, FakeClock()), prepare_s=0.01)
        tasks.create_task(start())
        await preparing.wait()
        async with queue.place("bob", None):
            listed.set()


async def test_a_call_for_which_no_connection_is_free_is_refused_and_not_made(
    mcp_database: str,
) -> None:
    upstream = ScriptedUpstream(calls=[ScriptedCall(ToolAnswer(False, ()))])
    async with Database.open(
        mcp_database, application_name="test", connections_max=3, pool_patience_s=0.05
    ) as database:
        journal = await Journal.open(database, "01900000-0000-7000-8000-0000000000bb")
        async with (
            CallExecutor.open(journal, upstream, supervision(FakeClock())) as executor,
            database.pool.acquire(),
            database.pool.acquire(),
        ):
            with pytest.raises(Overloaded):
                await executor.start(an_order(), PreparedCall(a_target()))
        assert (await journal.find(an_order().key), upstream.called) == (None, [])
