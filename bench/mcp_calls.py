"""Figures of MCP servers: calls against the bare SDK, many at once, listings, and what is kept.

Run it with `python bench/mcp_calls.py`, or give other sizes. It needs no stack: it starts the
server of the demo, a PostgreSQL and a mcpgateway itself. It prints one JSON object.

    one_call      milliseconds of a call, median of calls in turns: the SDK with a client that it
                  keeps, mcpgateway's sessions, and how many times as long these take
    parallel      200 calls at once, in milliseconds until the last one: mcpgateway's sessions, and
                  a whole mcpgateway with journal and limits
    listing       20 servers of which 3 are dead, in milliseconds: the first turn, a later turn of
                  the same chatd, and one whose chatd asks mcpgateway again
    many_tools    the same for 500 tools on 20 servers, and the tokens of the search in a prompt
    calls_kept    resident MiB, sessions, tasks and open files after a warm-up and after all calls
    session_calls_kept   the same for a server with sessions
    reconnects_kept   the same for a server that closes its stream after every call

`--only NAME`, any number of times, measures no others. `is_flat` says whether nothing of what is
kept grew: by no session, a few tasks and files, and 0.5 KiB of memory for each call.
"""

import argparse
import asyncio
import gc
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures
from mcp import Client

from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId
from chatd.tools.mcp_results import ResultFiles
from chatd.tools.mcpgateway import McpTools
from chatd.turns.domain.tool_search import index_of, tokens_of
from mcpgateway.client.session import TaskSession
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Target, Transport
from mcpgateway.servers.schema import MIGRATIONS, SCHEMA
from parley.api.mcp.v1 import runtime_service_pb2 as runtime_api
from parley.api.mcp.v1 import server_pb2, tool_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.clock import SystemClock
from parley.egress.policy import Policy
from parley.postgres import EmbeddedServer, migrate
from parley.rpc import Channels, acting_for
from support.chatd.workspaces.in_memory_attachments import InMemoryAttachmentStore
from support.chatd.workspaces.workspace_calls import ANN
from support.host.ports import free_port
from support.host.supervised import supervision
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.closing_server import closing_server
from support.mcpgateway.gateway import ADMIN, McpGateway, mcp_gateway
from support.mcpgateway.servers import demo_process, session_process, until_listening
from support.mcpgateway.team_server import team_server
from support.mcpgateway.values import a_server, a_target

TOOL, ARGUMENTS = "get_current_time", {"timezone": "UTC"}
ARGUMENTS_JSON = json.dumps(ARGUMENTS).encode()
SERVERS, DEAD = 20, 3
LISTINGS = 50
WARM_UP = 300
#: What may be more after many calls without being kept for each of them.
SPARE_TASKS, SPARE_FILES, SPARE_MIB = 10, 10, 4.0
MIB_PER_CALL = 0.5 / 1024

CONTEXT = TurnContext(ChatId("01900000-0000-7000-8000-0000000000cc"), ANN)
CONTEXT_LIMIT_TOKENS = 200_000

FIGURES = (
    "one_call",
    "parallel",
    "listing",
    "many_tools",
    "calls_kept",
    "session_calls_kept",
    "reconnects_kept",
)

Call = Callable[[], Awaitable[object]]


async def timed(call: Call) -> float:
    """Return how many milliseconds a call takes."""
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1000


async def timed_or_failure(call: Call) -> float | str:
    """Return how many milliseconds a call takes, or why it failed: a slow machine ends no run."""
    try:
        return round(await timed(call))
    except Exception as error:
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        return f"{type(first).__name__}: {first}"[:200]


async def all_at_once(call: Call, times: int) -> None:
    """Make many calls at once."""
    async with asyncio.TaskGroup() as group:
        for _ in range(times):
            group.create_task(call())  # type: ignore[arg-type]


def kept() -> dict[str, float]:
    """Return the resident memory and the sessions of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "rss_mib": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1),
        "sessions": sum(isinstance(each, TaskSession) for each in gc.get_objects()),
        "tasks": len(asyncio.all_tasks()),
        "open_files": len(os.listdir("/proc/self/fd")),
    }


async def repeated(call: Call, times: int) -> dict[str, Any]:
    """Call one after the other, and return what is kept after a warm-up and at the end."""
    for _ in range(min(WARM_UP, times)):
        await call()
    before = kept()
    began = time.perf_counter()
    for _ in range(times):
        await call()
    took_ms = (time.perf_counter() - began) * 1000 / times
    after = kept()
    return {
        "times": times,
        "ms_each": round(took_ms, 2),
        "after_warm_up": before,
        "at_the_end": after,
        "is_flat": is_flat(before, after, times),
    }


def is_flat(before: dict[str, float], after: dict[str, float], times: int) -> bool:
    """Return whether nothing is kept for each call."""
    grown = {name: after[name] - before[name] for name in before}
    return (
        grown["sessions"] <= 0
        and grown["tasks"] <= SPARE_TASKS
        and grown["open_files"] <= SPARE_FILES
        and grown["rss_mib"] <= SPARE_MIB + times * MIB_PER_CALL
    )


def calling(sessions: Sessions, target: Target, tool: str, arguments: bytes) -> Call:
    """Return a call through mcpgateway's sessions."""
    return lambda: sessions.call_tool(target, tool, arguments, ignore_progress, cancel_question)


async def against_sdk(url: str, calls: int, parallel: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the figures of single and of parallel calls."""
    async with Sessions.open(Policy().with_url(url), supervision()) as sessions:
        ours = calling(sessions, a_target(a_server(url=url)), TOOL, ARGUMENTS_JSON)
        async with Client(url) as client:

            def bare() -> Awaitable[object]:
                return client.call_tool(TOOL, ARGUMENTS)

            for warm in (bare, ours, bare, ours):
                await warm()
            pairs = [(await timed(bare), await timed(ours)) for _ in range(calls)]
            sdk, through = (statistics.median(column) for column in zip(*pairs, strict=True))
        at_once = await timed_or_failure(lambda: all_at_once(ours, parallel))
    one = {"sdk_ms": round(sdk, 2), "ms": round(through, 2), "ratio": round(through / sdk, 2)}
    return one, {"calls": parallel, "sessions_ms": at_once}


async def add(gateway: McpGateway, slug: str, url: str) -> str:
    """Add a server that every chat uses, and return its id."""
    settings = server_pb2.McpServerSettings(
        slug=slug,
        url=url,
        is_enabled=True,
        availability=server_pb2.AVAILABILITY_FORCE_ON,
        limits=server_pb2.McpServerLimits(calls_max=1000, calls_per_user_max=1000),
    )
    with acting_for(ADMIN):
        made = await gateway.servers.CreateServer(
            api.CreateServerRequest(request_id=slug, settings=settings)
        )
    return str(made.server.server_id)


@asynccontextmanager
async def whole_gateway(allowed: str) -> AsyncIterator[McpGateway]:
    """Run a mcpgateway with a PostgreSQL of its own."""
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as directory:
        server = EmbeddedServer(Path(directory) / "postgres", tcp_port=0)
        await server.start()
        try:
            url = server.admin_url()
            await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)
            async with mcp_gateway(Path(directory) / "home", url, allowed=allowed) as gateway:
                yield gateway
        finally:
            await server.stop()


async def calls_of_chats(gateway: McpGateway, server_id: str) -> Call:
    """Return a call of a tool as chatd makes it, each for another chat."""

    def context_of(chat_id: str) -> runtime_api.ChatContext:
        return runtime_api.ChatContext(chat_id=chat_id, root_chat_id=chat_id)

    with acting_for(ADMIN):
        listing = await gateway.runtime.ListTools(
            runtime_api.ListToolsRequest(context=context_of("chat"), server_ids=[server_id])
        )
    digest = next(tool.digest for tool in listing.tools if tool.original_name == TOOL)
    numbers = count()

    async def one() -> None:
        number = next(numbers)
        request = runtime_api.CallToolRequest(
            key=runtime_api.CallKey(
                execution_id=f"call-{number}",
                chat_id=f"chat-{number}",
                owner_epoch=1,
                journal_generation=listing.journal_generation,
            ),
            context=context_of(f"chat-{number}"),
            server_id=server_id,
            original_name=TOOL,
            expected_digest=digest,
            arguments_json=ARGUMENTS_JSON,
        )
        with acting_for(ADMIN):
            events = [each async for each in gateway.runtime.CallTool(request, timeout=120)]
        assert events[-1].result.outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED, events[-1]

    return one


async def through_gateway(url: str, at_once: int) -> tuple[float | str, dict[str, float]]:
    """Return the figures of a whole mcpgateway: parallel calls and listings."""
    async with whole_gateway("127.0.0.0/8") as gateway:
        server_id = await add(gateway, "demo-1", url)
        one = await calls_of_chats(gateway, server_id)
        await one()
        parallel = await timed_or_failure(lambda: all_at_once(one, at_once))
        for number in range(2, SERVERS + 1):
            is_dead = number > SERVERS - DEAD
            place = f"http://127.0.0.1:{free_port()}/mcp" if is_dead else url
            await add(gateway, f"demo-{number}", place)
        tools = tools_at(gateway)
        found = await listings(tools)
        assert len(await tools.reports(CONTEXT)) == SERVERS
    return parallel, found


def tools_at(gateway: McpGateway) -> McpTools:
    """Return the tools of a mcpgateway as a chatd has them."""
    return McpTools(
        Channels((gateway.settings.listen,), lambda _: gateway.chatd),
        SystemClock(),
        ResultFiles(InMemoryAttachmentStore()),
    )


async def listings(tools: McpTools) -> dict[str, float]:
    """Return the figures of listings of turns."""
    first = await timed(lambda: tools.list_tools(CONTEXT))
    warm = [await timed(lambda: tools.list_tools(CONTEXT)) for _ in range(LISTINGS)]
    again = []
    for _ in range(LISTINGS):
        tools.forget_catalogues()
        again.append(await timed(lambda: tools.list_tools(CONTEXT)))
    return {
        "first_ms": round(first, 1),
        "warm_ms": round(statistics.median(warm), 3),
        "asked_again_ms": round(statistics.median(again), 1),
    }


async def with_many_tools() -> dict[str, float]:
    """Return the figures of listings with hundreds of tools."""
    async with team_server(free_port()) as url, whole_gateway("127.0.0.0/8") as gateway:
        for number in range(SERVERS):
            await add(gateway, f"team-{number}", url)
        tools = tools_at(gateway)
        found = await listings(tools)
        specs = await tools.list_tools(CONTEXT)
        search = index_of(specs, await tools.reports(CONTEXT), CONTEXT_LIMIT_TOKENS)
        tokens = sum(map(tokens_of, search.offered(specs, ())))
    return {"tools": len(specs), **found, "prompt_tokens": tokens}


async def reconnecting(times: int) -> dict[str, Any]:
    """Return what is kept after many reconnections."""
    async with (
        closing_server() as server,
        Sessions.open(Policy().with_url(server.url), supervision()) as sessions,
    ):
        target = a_target(a_server(url=server.url, transport=Transport.SSE))
        found = await repeated(calling(sessions, target, "echo", b"{}"), times)
        return {**found, "streams_opened": server.opened}


async def calling_often(url: str, times: int) -> dict[str, Any]:
    """Return what is kept after many calls."""
    async with Sessions.open(Policy().with_url(url), supervision()) as sessions:
        target = a_target(a_server(url=url))
        return await repeated(calling(sessions, target, TOOL, ARGUMENTS_JSON), times)


async def calling_sessions_often(times: int) -> dict[str, Any]:
    """Return what is kept after many calls of a server with sessions."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    with session_process(port, "mcp"):
        await until_listening(port)
        async with Sessions.open(Policy().with_url(url), supervision()) as sessions:
            target = a_target(a_server(url=url))
            return await repeated(calling(sessions, target, "add", b'{"a":1,"b":2}'), times)


async def of_demo_server(given: argparse.Namespace, wanted: set[str]) -> dict[str, Any]:
    """Return the figures that need the server of the demo."""
    figures: dict[str, Any] = {}
    port = free_port()
    with demo_process(port):
        await until_listening(port)
        url = f"http://127.0.0.1:{port}/mcp"
        if wanted & {"one_call", "parallel"}:
            figures["one_call"], figures["parallel"] = await against_sdk(
                url, given.calls, given.parallel
            )
        if wanted & {"parallel", "listing"}:
            at_once, figures["listing"] = await through_gateway(url, given.parallel)
            figures["parallel"] = {**figures.get("parallel", {}), "gateway_ms": at_once}
        if "calls_kept" in wanted:
            figures["calls_kept"] = await calling_often(url, given.kept_calls)
    return figures


async def main(given: argparse.Namespace) -> None:
    """Print the figures."""
    # Servers of the SDK in this process would log every request.
    logging.disable(logging.INFO)
    wanted = set(given.only or FIGURES)
    figures: dict[str, Any] = {}
    if wanted & {"one_call", "parallel", "listing", "calls_kept"}:
        figures |= await of_demo_server(given, wanted)
    if "many_tools" in wanted:
        figures["many_tools"] = await with_many_tools()
    if "session_calls_kept" in wanted:
        figures["session_calls_kept"] = await calling_sessions_often(given.kept_calls)
    if "reconnects_kept" in wanted:
        figures["reconnects_kept"] = await reconnecting(given.reconnects)
    print_figures({name: figures[name] for name in FIGURES if name in figures and name in wanted})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=200)
    parser.add_argument("--kept-calls", type=int, default=10_000)
    parser.add_argument("--reconnects", type=int, default=1_000)
    parser.add_argument("--only", action="append", choices=FIGURES)
    asyncio.run(main(parser.parse_args()))
