"""Tools that write to processes, with a real toolrunner."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from parley.rpc import Channels
from support.chatd.workspaces.workspace_calls import Calls
from support.toolrunner.node import House, connected, node


@pytest.fixture
async def calls(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Calls]:
    house = House.build(tmp_path_factory.mktemp("t"))
    async with asyncio.timeout(30), node(house), connected(house) as client:
        yield Calls.through(Channels((house.address,), lambda _: client.channel), house.clock)


async def test_a_question_is_answered(calls: Calls) -> None:
    command = "printf 'name? '; read name; echo hello $name; read rest; echo over"
    _, asked = await calls.call("execute", command=command, keep_stdin_open=True, timeout="0s")
    process_id = asked["process_id"]
    writing = {"process_id": process_id, "text": "ann\n", "wait_timeout": "5s"}
    _, answered = await calls.call("process_write", **writing, until="match:hello")
    assert answered["matched_line"].endswith("hello ann")
    _, ended = await calls.call(
        "process_write", process_id=process_id, end_of_input=True, until="exit"
    )
    assert (ended["output"], ended["exit_code"], ended["ok"]) == ("over\n", 0, True)


async def test_input_that_is_given_at_once_ends(calls: Calls) -> None:
    _, told = await calls.call("execute", command="cat", stdin="one\ntwo", timeout="5s")
    assert (told["output"], told["exit_code"]) == ("one\ntwo", 0)


async def test_a_terminal_takes_keys(calls: Calls) -> None:
    _, started = await calls.call("execute", command="tty; cat", tty=True, timeout="0s")
    process_id = started["process_id"]
    typing = {"process_id": process_id, "text": "hi", "keys": ["enter", "ctrl-d"]}
    _, told = await calls.call("process_write", **typing, until="exit", wait_timeout="5s")
    assert (told["running"], told["exit_code"]) == (False, 0), told
    _, whole = await calls.call("process_output", process_id=process_id)
    assert "/dev/pts/" in whole["output"]


async def test_a_closed_input_is_explained(calls: Calls) -> None:
    _, started = await calls.call("execute", command="sleep 60", run_in_background=True)
    process_id = started["process_id"]
    _, told = await calls.call("process_write", process_id=process_id, text="x")
    assert (told["ok"], told["reason"]) == (False, "NOT_ATTACHABLE")
    assert "keep_stdin_open" in told["hint"]
    await calls.call("process_signal", process_id=process_id, signal="kill")


async def test_a_line_is_waited_for(calls: Calls) -> None:
    command = "for n in 1 2 3; do echo line $n; sleep 0.1; done; sleep 60"
    _, started = await calls.call("execute", command=command, timeout="0s")
    process_id = started["process_id"]
    _, told = await calls.call("process_output", process_id=process_id, until="match:line [3]")
    assert told["matched_line"] == "line 3"
    _, bad = await calls.call("process_output", process_id=process_id, until="match:(")
    assert (bad["ok"], bad["reason"]) == (False, "INVALID_PATTERN")
    await calls.call("process_signal", process_id=process_id, signal="kill")
