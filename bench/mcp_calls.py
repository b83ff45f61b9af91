"""Measures a call of an MCP tool through mcpgateway's sessions against the bare SDK.

    MCP_DEMO_LISTEN=127.0.0.1:8931 .venv/bin/python -m mcpgateway.demo &
    .venv/bin/python bench/mcp_calls.py http://127.0.0.1:8931/mcp [CALLS]

Both call the server of the demo, one call after the other, in turns. The SDK keeps one
client; mcpgateway keeps connections and makes a client for each call, so that users share nothing.
"""

import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from mcp import Client
from opentelemetry.metrics import NoOpMeter

from mcpgateway.client.questions import Answer, Question
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Server, ServerId, ServerSettings, Target
from parley.clock import SystemClock
from parley.egress.policy import Policy
from parley.tasks import Supervision

TOOL, ARGUMENTS = "get_current_time", {"timezone": "UTC"}


def target_of(url: str) -> Target:
    """Return the demo's server as mcpgateway knows it."""
    now = datetime.now(UTC)
    settings = ServerSettings(slug="demo", display_name="Demo", url=url)
    server = Server(
        ServerId("00000000-0000-7000-8000-000000000001"), 1, settings, False, (), now, now
    )
    return Target(server, {}, "user", "")


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    """Return how many milliseconds a call takes."""
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1000


async def nobody(question: Question) -> Answer:
    """Refuse to answer: these tools ask nothing."""
    raise AssertionError(question)


async def main(url: str, calls: int) -> None:
    """Print the medians."""
    supervision = Supervision.of(NoOpMeter("bench"), SystemClock(), random.Random(1))
    async with Sessions.open(Policy().with_url(url), supervision) as sessions:
        target, arguments = target_of(url), json.dumps(ARGUMENTS).encode()
        async with Client(url) as client:

            async def bare() -> object:
                return await client.call_tool(TOOL, ARGUMENTS)

            async def ours() -> object:
                return await sessions.call_tool(target, TOOL, arguments, lambda _: None, nobody)

            for warm in (bare, ours, bare, ours):
                await warm()
            pairs = [(await timed(bare), await timed(ours)) for _ in range(calls)]
    sdk, through = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{calls} calls each: SDK {sdk:.1f} ms, mcpgateway {through:.1f} ms, {through / sdk:.1f}x"
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200))
