"""The output of commands while they run, from a real toolrunner."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from chatd.chats.domain.chat import PendingCall
from chatd.content.domain.parts import ToolResultDelta
from chatd.content.domain.turn_context import CallProcess
from chatd.primitives.domain.ids import Fence
from chatd.streams.engine.flush_timer import INTERVAL_S, FlushTimer
from chatd.streams.engine.live import EPISODE_BYTES_MAX, LiveChats, LivePart
from chatd.streams.engine.live_results import FLUSH_BYTES, RESULTS_BYTES_MAX
from chatd.tools.workspace.process_wait import LIVE_OUTPUT_BYTES_MAX, LIVE_OUTPUT_PAUSE_S
from chatd.turns.engine.progress import LiveProgress
from parley.clock import SystemClock
from parley.rpc import Channels
from parley.tasks import owned_tasks
from support.chatd.workspaces.recorded_progress import Reports
from support.chatd.workspaces.workspace_calls import CHAT, Calls
from support.toolrunner.node import House, connected, node


@pytest.fixture
async def calls(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Calls]:
    house = House.build(tmp_path_factory.mktemp("t"))
    async with node(house), connected(house) as client:
        yield Calls.through(Channels((house.address,), lambda _: client.channel), house.clock)


async def executed(calls: Calls, reports: Reports, **arguments: Any) -> dict[str, Any]:
    execution = await calls.execution("execute", json.dumps(arguments))
    context = replace(execution.context, progress=reports)
    _, told = await calls.carried_out(replace(execution, context=context))
    return told


def folded(parts: list[LivePart]) -> str:
    """Return the output that a reader of these parts shows."""
    text = ""
    for part in parts:
        assert isinstance(part.part, ToolResultDelta)
        text = part.part.text if part.part.is_reset else text + part.part.text
    return text


async def test_a_command_is_seen_while_it_runs(calls: Calls) -> None:
    reports = Reports()
    command = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        running = group.create_task(executed(calls, reports, command=command, timeout="15s"))
        await reports.until_text("one\n")
        assert not running.done()
        await calls.call("write_file", path="go", content="now")
    told = running.result()
    assert reports.updates[:2] == [CallProcess(told["process_id"]), "one\n"]
    # What comes with the end may be in the result only.
    assert told["output"] == "one\ntwo\n"
    assert "one\ntwo\n".startswith(reports.text)


async def test_lines_that_come_one_by_one_are_all_shown_in_order(calls: Calls) -> None:
    reports = Reports()
    command = "for n in 1 2 3 4 5 6 7 8 9; do echo line $n; sleep 0.1; done; read end"
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        running = group.create_task(
            executed(calls, reports, command=command, timeout="15s", keep_stdin_open=True)
        )
        await reports.until_text("line 9\n")
        process = next(each for each in reports.updates if isinstance(each, CallProcess))
        await calls.call("process_write", process_id=process.process_id, end_of_input=True)
    assert reports.text == running.result()["output"]
    assert len(reports.updates) <= 11


async def test_of_100_mb_a_bounded_part_is_shown_and_the_result_is_whole(calls: Calls) -> None:
    size = 100_000_000
    command = f"yes 0123456789abcde | head -c {size}; sleep 0.4; echo; echo done; sleep 0.4"
    reports, parts = Reports(), list[LivePart]()
    clock = SystemClock()
    flush_timer = FlushTimer(clock)
    live = LiveChats(lambda _, part: parts.append(part), flush_timer=flush_timer)
    episode = live.open(CHAT, Fence(1, 2, 1))
    reports.onto = LiveProgress((PendingCall("call-1", "execute"),), episode.add)
    async with asyncio.timeout(100), owned_tasks() as start:
        start(flush_timer.run())
        began_s = clock.monotonic()
        tracemalloc.start()
        try:
            told = await executed(calls, reports, command=command, timeout="90s")
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        took_s = clock.monotonic() - began_s
    assert told["exit_code"] == 0
    assert told["output"].endswith("\ndone\n")
    truncation = told["truncation"]
    assert truncation["original_bytes"] == size + len("\ndone\n")

    texts = [update for update in reports.updates if isinstance(update, str)]
    # The first one comes with the start, whose output is bounded as that of a result.
    assert len(texts[0].encode()) <= 32 * 1024
    assert all(len(text.encode()) <= LIVE_OUTPUT_BYTES_MAX for text in texts[1:])
    assert 2 <= len(texts) <= took_s / LIVE_OUTPUT_PAUSE_S + 2
    assert " lines left out ...]" in reports.text

    # What readers are sent: a few events, no faster than other live parts.
    assert 1 <= len(parts) <= len(reports.updates)
    shown_bytes = sum(part.characters for part in parts)
    assert shown_bytes <= took_s / INTERVAL_S * FLUSH_BYTES + RESULTS_BYTES_MAX
    assert isinstance(parts[0].part, ToolResultDelta)
    assert parts[0].part.process_id == told["process_id"]
    assert folded(parts) in reports.text
    assert sum(part.characters for part in live.open_parts(CHAT)) <= EPISODE_BYTES_MAX
    assert peak_bytes < 16_000_000
