"""The output of commands while they run, from a real toolrunner."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from chatd.content.domain.turn_context import CallProcess
from chatd.tools.workspace.process_wait import LIVE_OUTPUT_BYTES_MAX, LIVE_OUTPUT_PAUSE_S
from parley.rpc import Channels
from support.chatd.workspaces.recorded_progress import Reports
from support.chatd.workspaces.workspace_calls import Calls
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
    command = "for n in 1 2 3 4 5 6 7 8 9; do echo line $n; sleep 0.1; done; sleep 0.5"
    async with asyncio.timeout(20):
        told = await executed(calls, reports, command=command, timeout="15s")
    assert reports.text == told["output"]
    assert 3 < len(reports.updates) <= 11


async def test_of_100_mb_a_bounded_part_is_shown_and_the_result_is_whole(calls: Calls) -> None:
    reports = Reports()
    size = 100_000_000
    command = f"yes 0123456789abcde | head -c {size}; sleep 0.4; echo; echo done; sleep 0.4"
    clock = asyncio.get_running_loop()
    async with asyncio.timeout(100):
        began_s = clock.time()
        tracemalloc.start()
        try:
            told = await executed(calls, reports, command=command, timeout="90s")
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        took_s = clock.time() - began_s
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
    assert reports.text.endswith("\ndone\n")
    assert peak_bytes < 16_000_000
