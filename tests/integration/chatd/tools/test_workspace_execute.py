"""Tools for processes with a real toolrunner: what exists of it today."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import NeverSeen, StillRunning
from chatd.primitives.domain.ids import MessageId
from chatd.turns.domain.loops import repetitions
from parley.rpc import Channels
from support.chatd.workspaces.workspace_calls import Calls
from support.toolrunner.node import House, connected, node


@pytest.fixture
async def calls(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Calls]:
    house = House.build(tmp_path_factory.mktemp("t"))
    async with node(house), connected(house) as client:
        yield Calls.through(Channels((house.address,), lambda _: client.channel), house.clock)


async def test_a_command_runs_and_is_told(calls: Calls) -> None:
    async with asyncio.timeout(10):
        outcome, told = await calls.call(
            "execute", command="echo $WORD; exit 3", env={"WORD": "hi"}, timeout="5s"
        )
    told.pop("wall_duration_ms", None)
    assert (outcome, told) == (
        ToolOutcome.FAILED,
        {
            "ok": False,
            "error": "It ended with exit code 3.",
            "reason": "EXIT_CODE",
            "hint": "Its output says what went wrong.",
            "process_id": told["process_id"],
            "running": False,
            "exit_code": 3,
            "sandbox": "none",
            "output": "hi\n",
            "next_cursor": 3,
        },
    )


async def test_much_output_keeps_its_head_and_its_very_last_line(calls: Calls) -> None:
    async with asyncio.timeout(20):
        _, told = await calls.call("execute", command="seq 200000", timeout="15s")
    assert told["output"].startswith("1\n2\n")
    assert told["output"].endswith("\n200000\n")
    assert len(told["output"].encode()) <= 32 * 1024
    truncation = told["truncation"]
    assert truncation["omitted_bytes"] + truncation["retained_bytes"] == 1_288_895
    assert told["next_step"]


async def test_equal_runs_of_a_command_are_repetitions_of_one_call(calls: Calls) -> None:
    history, now = list[Message](), datetime(2026, 1, 1, tzinfo=UTC)
    async with asyncio.timeout(60):
        for place in range(1, 4):
            outcome, told = await calls.call("execute", command="seq 200000; exit 2", timeout="15s")
            call = ToolCall(f"call_{place}", "execute", "{}")
            result = ToolResult(call.tool_call_id, call.tool_name, json.dumps(told), outcome)
            history += (
                Message(MessageId(2 * place), place, Role.ASSISTANT, (call,), "", now),
                Message(MessageId(2 * place + 1), place, Role.TOOL, (result,), "", now),
            )
    assert repetitions(history, MessageId(1), ToolCall("next", "execute", "{}"))[0] == 3


async def test_a_server_is_started_followed_and_ended(calls: Calls) -> None:
    async with asyncio.timeout(20):
        _, started = await calls.call("execute", command="echo up; sleep 60 &")
        assert (started["running"], started["background"]) == (True, True)
        process_id = started["process_id"]
        _, told = await calls.call(
            "process_output", process_id=process_id, until="output", wait_timeout="5s"
        )
        assert told["output"] == "up\n"
        _, listed = await calls.call("process_list", only_running=True)
        assert [each["process_id"] for each in listed["processes"]] == [process_id]
        _, ended = await calls.call("process_signal", process_id=process_id, signal="terminate")
        assert not ended["running"]
        # The shell may see that its command was ended before it is ended itself.
        assert ended.get("signal") == "SIGTERM" or ended["exit_code"] == 128 + signal.SIGTERM
        _, over = await calls.call("process_signal", process_id=process_id, signal="kill")
        assert over["reason"] == "PROCESS_NOT_RUNNING"


async def test_the_same_call_attaches_to_its_process(calls: Calls) -> None:
    execution = await calls.execution("execute", '{"command": "echo $$", "timeout": "5s"}')
    async with asyncio.timeout(10):
        assert await calls.tools.find(execution) == NeverSeen()
        first = await calls.carried_out(execution)
        assert await calls.tools.find(execution) == StillRunning()
        second = await calls.carried_out(execution)
    assert first[1]["output"] == second[1]["output"]
    assert first[1]["process_id"] == second[1]["process_id"]


async def test_a_process_of_nobody_looks_like_none(calls: Calls) -> None:
    nobody = "00000000-0000-0000-0000-00000000dead"
    _, told = await calls.call("process_output", process_id=nobody)
    assert (told["reason"], told["ok"]) == ("PROCESS_NOT_FOUND", False)
    assert "process_list" in told["hint"]
    assert "has expired" in told["hint"]
    _, odd = await calls.call("process_output", process_id="the server")
    assert (odd["reason"], odd["hint"]) == ("INVALID_REQUEST", told["hint"])


async def test_a_command_has_a_shell_whatever_path_its_programs_are_looked_for_in(
    calls: Calls,
) -> None:
    _, told = await calls.call("execute", command="echo $PATH; ls", env={"PATH": "/nowhere"})
    assert (told["exit_code"], told["output"].splitlines()[0]) == (127, "/nowhere")


async def test_what_is_no_file_is_told_as_such(calls: Calls) -> None:
    await calls.call("execute", command="mkfifo pipe; ln -s around around")
    _, listed = await calls.call("list_files")
    shown = [each for each in listed["entries"] if each.startswith(("pipe", "around"))]
    assert shown == ["around -> around", "pipe (no file: a pipe, a socket or a device)"]
    _, pipe = await calls.call("read_file", path="pipe")
    assert (pipe["reason"], pipe["error"]) == (
        "WRONG_PATH_KIND",
        "'pipe' is a pipe, a socket or a device; only regular files are opened",
    )
    _, around = await calls.call("read_file", path="around")
    assert around["reason"] == "OUTSIDE_WORKSPACE"
    assert "in a circle" in around["error"]


async def test_a_list_of_processes_tells_when_each_began_and_ended(calls: Calls) -> None:
    await calls.call("execute", command="true")
    _, running = await calls.call("execute", command="sleep 60", timeout="0s")
    _, told = await calls.call("process_list")
    named = [
        (each["command"], "started_at" in each, "ended_at" in each) for each in told["processes"]
    ]
    assert named == [("sleep 60", True, False), ("true", True, True)]
    await calls.call("process_signal", process_id=running["process_id"], signal="kill")
