"""A toolrunner that is killed during a call of a workspace server."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import psutil
import pytest

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import UNKNOWN_OUTCOME, Ended
from parley.clock import SystemClock
from support.chatd.workspace_servers.server_calls import ServerCalls, server_calls
from support.host.conditions import until
from support.toolrunner.node import House, toolrunner
from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level

WITHIN_S = 60


def pids_with(word: str) -> set[int]:
    """Return the processes with a word in their command line."""
    found = ((each.pid, each.info["cmdline"]) for each in psutil.process_iter(["cmdline"]))
    return {pid for pid, words in found if words and word in words}


async def is_answered(calls: ServerCalls) -> bool:
    """Return whether a call is answered; a node that is not up yet offers nothing."""
    if "ws_plain__echo" not in await calls.offered():
        return False
    return (await calls.call("ws_plain__echo", text="again"))[0] is ToolOutcome.DONE


async def until_answered(calls: ServerCalls) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await is_answered(calls):
            await SystemClock().sleep(0.1)


@pytest.mark.parametrize("level", [Level.NONE, *offered()], ids=lambda each: str(each.word))
async def test_a_call_is_unknown_after_a_killed_node_and_its_server_does_not_go_on(
    level: Level, tmp_path_factory: pytest.TempPathFactory
) -> None:
    house = replace(House.build(tmp_path_factory.mktemp("t")), sandbox_level=level.word)
    word = f"server-of-{house.directory.name}-{level.word}"
    daemon = f"daemon-of-{house.directory.name}-{level.word}"
    async with asyncio.timeout(180), AsyncExitStack() as stack:
        first = await stack.enter_async_context(toolrunner(house))
        calls = await stack.enter_async_context(server_calls(house))
        calls.define_plain(word)
        await calls.trust()
        assert (await calls.call("ws_plain__daemon", title=daemon))[0] is ToolOutcome.DONE
        before = pids_with(word)
        assert before
        slow = await calls.execution("ws_plain__slow")
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(calls.tools.execute(slow, calls.location))
            # Another call is answered meanwhile, so the first one has reached the server.
            await calls.call("ws_plain__echo", text="between")
            first.kill()
        await first.wait()
        assert waiting.result() == UNKNOWN_OUTCOME
        assert calls.tools.find(slow) == Ended(UNKNOWN_OUTCOME)
        await stack.enter_async_context(toolrunner(house))
        await until_answered(calls)
        await asyncio.to_thread(
            until,
            lambda: not before & pids_with(word) and not pids_with(daemon),
            "the end of the server from before",
            within_s=WITHIN_S,
        )
        # It was made once, and nothing made it again.
        assert (calls.root / "slow_calls").read_text() == "x"
        assert await calls.tools.execute(slow, calls.location) == UNKNOWN_OUTCOME
