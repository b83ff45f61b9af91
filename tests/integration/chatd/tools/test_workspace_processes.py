"""Tools for processes over a real socket, with a toolrunner that fails where it should."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import ExecutorUnreachable, NeverSeen, StillRunning
from chatd.content.domain.turn_context import CallProcess
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.tools.toolrunner import WorkspaceTools
from chatd.tools.workspace.background import PROMOTED_NOTE
from chatd.tools.workspace.execute import CAT_NOTE
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.workspace.v1 import process_pb2, process_service_pb2
from parley.clock import FakeClock
from parley.rpc import Channels
from support.chatd.workspaces.fake_toolrunner import FakeToolrunner, served
from support.chatd.workspaces.in_memory_attachments import InMemoryAttachmentStore
from support.chatd.workspaces.recorded_progress import Reports
from support.chatd.workspaces.workspace_calls import Calls

WHOLE = ("ok", "output", "exit_code", "running")


@pytest.fixture
def fake() -> FakeToolrunner:
    fake = FakeToolrunner()
    fake.scripts = {"echo hi": ("hi\n", 0), "make": ("broken\n", 2), "cat a.py": ("x", 0)}
    return fake


@pytest.fixture
async def channels(fake: FakeToolrunner, tmp_path: Path) -> AsyncIterator[Channels]:
    async with served(fake, tmp_path) as channels:
        yield channels


@pytest.fixture
def calls(channels: Channels) -> Calls:
    return Calls.through(channels, FakeClock())


async def test_a_command_that_ends_is_told_whole(calls: Calls, fake: FakeToolrunner) -> None:
    assert await calls.call("execute", command="echo hi") == (
        ToolOutcome.DONE,
        {
            "ok": True,
            "process_id": fake.last().process.process_id,
            "running": False,
            "exit_code": 0,
            "output": "hi\n",
            "next_cursor": 3,
        },
    )


async def test_a_command_that_ends_at_once_costs_one_request_and_reports_nothing(
    calls: Calls, fake: FakeToolrunner
) -> None:
    reports = Reports()
    execution = await calls.execution("execute", '{"command": "echo hi"}')
    context = replace(execution.context, progress=reports)
    _, told = await calls.carried_out(replace(execution, context=context))
    assert (told["output"], len(fake.requests), reports.updates) == ("hi\n", 1, [])


async def test_a_command_that_goes_on_names_its_process_and_what_it_said(
    calls: Calls, fake: FakeToolrunner
) -> None:
    reports = Reports()
    execution = await calls.execution("execute", '{"command": "serve", "timeout": "2s"}')
    context = replace(execution.context, progress=reports)
    _, told = await calls.carried_out(replace(execution, context=context))
    assert reports.updates == [CallProcess(told["process_id"]), ""]
    assert told["running"]


async def test_a_command_that_fails_says_so_and_what_to_do(
    calls: Calls, fake: FakeToolrunner
) -> None:
    assert await calls.call("execute", command="make") == (
        ToolOutcome.FAILED,
        {
            "ok": False,
            "error": "It ended with exit code 2.",
            "reason": "EXIT_CODE",
            "hint": "Its output says what went wrong.",
            "process_id": fake.last().process.process_id,
            "running": False,
            "exit_code": 2,
            "output": "broken\n",
            "next_cursor": 7,
        },
    )


async def test_a_command_that_outlives_its_wait_is_no_failure(calls: Calls) -> None:
    outcome, told = await calls.call("execute", command="serve", timeout="1s")
    assert (outcome, told["ok"], told["running"], told["exit_code"]) == (
        ToolOutcome.DONE,
        True,
        True,
        None,
    )
    assert "process_output with this process_id and since=0" in told["next_step"]


async def test_a_wait_has_thirty_seconds_of_headroom(calls: Calls, fake: FakeToolrunner) -> None:
    await calls.call("execute", command="serve", timeout="2m")
    assert 145 < fake.allowed_s[0] < 151
    # The beginning of it is waited for with the start.
    assert [each.condition.max_wait_ms for each in fake.requests] == [300, 119_700]


async def test_a_command_that_is_over_soon_takes_one_request(
    calls: Calls, fake: FakeToolrunner
) -> None:
    outcome, told = await calls.call("execute", command="echo hi", timeout="2m")
    assert (outcome, [told[name] for name in WHOLE]) == (ToolOutcome.DONE, [True, "hi\n", 0, False])
    assert [type(each) for each in fake.requests] == [process_service_pb2.StartProcessRequest]


@pytest.mark.parametrize("wait", ["0s", "1s"])
async def test_a_wait_as_long_as_that_for_a_start_takes_one_request(
    calls: Calls, fake: FakeToolrunner, wait: str
) -> None:
    outcome, told = await calls.call("execute", command="serve", timeout=wait)
    assert (outcome, told["running"], len(fake.requests)) == (ToolOutcome.DONE, True, 1)


async def test_a_node_that_does_not_wait_for_a_start_is_asked_to_wait(
    calls: Calls, fake: FakeToolrunner
) -> None:
    fake.is_waiting_at_start = False
    await calls.call("execute", command="serve", timeout="10s")
    assert fake.requests[-1].condition.max_wait_ms == 10_000


async def test_a_wait_longer_than_the_nodes_is_asked_for_again_and_capped(
    calls: Calls, fake: FakeToolrunner
) -> None:
    _, told = await calls.call("execute", command="serve", timeout="2h")
    asked_ms = [each.condition.max_wait_ms for each in fake.requests[1:]]
    assert asked_ms == [300_000] * 5 + [299_700]
    assert told["notes"] == ["timeout: one call waits at most 1800s."]


async def test_a_trailing_ampersand_becomes_a_background_process(
    calls: Calls, fake: FakeToolrunner
) -> None:
    outcome, told = await calls.call("execute", command="serve --port 80 &")
    assert fake.requests[0].spec.command == "serve --port 80"
    assert fake.requests[0].spec.background
    assert (outcome, told["background"], told["notes"]) == (
        ToolOutcome.DONE,
        True,
        [PROMOTED_NOTE],
    )


async def test_a_plain_cat_is_advised_to_be_a_read(calls: Calls) -> None:
    assert (await calls.call("execute", command="cat a.py"))[1]["notes"] == [CAT_NOTE]


async def test_directory_variables_and_input_reach_the_process(
    calls: Calls, fake: FakeToolrunner
) -> None:
    await calls.call(
        "execute",
        command="serve",
        workdir="src",
        env={"Path": "1", "PATH": "2"},
        stdin="yes\n",
        keep_stdin_open=True,
        tty=True,
        max_output_bytes=2048,
    )
    assert fake.requests[0].spec == process_pb2.ProcessSpec(
        command="serve",
        workdir="src",
        environment={"Path": "1", "PATH": "2"},
        stdin=b"yes\n",
        stdin_mode=process_pb2.STDIN_MODE_TERMINAL,
        terminal=process_pb2.TerminalSize(rows=24, columns=120),
    )
    assert fake.requests[1].budget.max_bytes == 2048


async def test_output_is_asked_for_within_what_the_model_can_read(
    calls: Calls, fake: FakeToolrunner
) -> None:
    small = await calls.execution("execute", '{"command": "echo hi"}', budget_bytes=16_384)
    await calls.carried_out(small)
    await calls.call("execute", command="echo hi")
    budgets = [each.budget.max_bytes for each in fake.requests if hasattr(each, "budget")]
    assert budgets == [8192, 32_768]


async def test_a_wait_that_is_cut_after_the_end_is_not_noticed(
    calls: Calls, fake: FakeToolrunner
) -> None:
    fake.is_waiting_at_start, fake.down["WaitOutput"] = False, 1
    outcome, told = await calls.call("execute", command="echo hi")
    assert (outcome, [told[name] for name in WHOLE]) == (ToolOutcome.DONE, [True, "hi\n", 0, False])
    assert 35 < fake.allowed_s[-1] < 41


async def test_a_wait_that_is_cut_in_the_middle_goes_on_when_the_node_is_back(
    calls: Calls, fake: FakeToolrunner
) -> None:
    fake.is_holding, fake.down["WaitOutput"] = True, 1
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        calling = group.create_task(calls.call("execute", command="serve"))
        await fake.asked.wait()
        fake.end(fake.last(), output="listening\n")
        fake.release.set()
    outcome, told = calling.result()
    assert (outcome, told["ok"], told["output"]) == (ToolOutcome.DONE, True, "listening\n")


async def pass_time(clock: FakeClock) -> None:
    """Let time pass whenever somebody waits for it."""
    while True:
        await clock.until_sleeping()
        clock.advance(5)


@pytest.mark.parametrize(
    ("name", "arguments", "expected", "reason"),
    [
        ("execute", {"command": "serve"}, ToolOutcome.UNKNOWN, "OUT_OF_SIGHT"),
        ("process_output", {"process_id": "p"}, ToolOutcome.FAILED, "OUT_OF_SIGHT"),
        ("process_list", {}, ToolOutcome.FAILED, "UNREACHABLE"),
    ],
)
async def test_a_node_that_does_not_come_back_is_told_in_plain_words(
    channels: Channels,
    fake: FakeToolrunner,
    name: str,
    arguments: dict[str, str],
    expected: ToolOutcome,
    reason: str,
) -> None:
    clock, attachment_store = FakeClock(), InMemoryAttachmentStore()
    locator = MovingSites(str(channels.address_for("any")), [0, 1])
    tools = WorkspaceTools(channels, clock, attachment_store, locator)
    calls = Calls(tools, attachment_store)
    fake.is_waiting_at_start = False
    fake.down.update({"WaitOutput": 1000, "look": 1000, "ListProcesses": 1000})
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        passing = group.create_task(pass_time(clock))
        outcome, told = await calls.call(name, **arguments)
        passing.cancel()
    assert (outcome, told["reason"]) == (expected, reason)
    assert "it cannot be reached" in told["error"]
    # Nothing of the transport: neither its words nor its codes nor its addresses.
    for word in ("is down", "UNAVAILABLE", "unix:", "/"):
        assert word not in told["error"]
    if name == "execute":
        assert told["process_id"] == fake.last().process.process_id
    # The next call asks where the workspace is, which may be on another node by then.
    assert locator.placements == [1]


async def test_a_start_whose_answer_is_lost_is_found_and_attached_to(
    calls: Calls, fake: FakeToolrunner
) -> None:
    execution = await calls.execution("execute", '{"command": "echo hi"}')
    assert await calls.tools.find(execution) == NeverSeen()
    fake.lost["StartProcess"] = 1
    with pytest.raises(ExecutorUnreachable):
        await calls.carried_out(execution)
    assert await calls.tools.find(execution) == StillRunning()
    outcome, told = await calls.carried_out(execution)
    assert (outcome, told["output"]) == (ToolOutcome.DONE, "hi\n")
    assert set(fake.starts.values()) == {1}


@dataclass
class MovingSites:
    """Knows a placement until it is forgotten, and then the next one.

    Attributes:
        placements: The epochs that a look finds, one after another; the last one stays.
    """

    address: str
    placements: list[int]

    async def locate_for_turn(self, chat_id: ChatId) -> WorkspaceLocation:
        return WorkspaceLocation(self.address, chat_id, self.placements[0])

    async def ensure_ready(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        return await self.locate_for_turn(chat_id)

    async def locate(self, chat_id: ChatId) -> WorkspaceLocation:
        return await self.locate_for_turn(chat_id)

    async def last_known(self, chat_id: ChatId) -> WorkspaceLocation:
        return await self.locate_for_turn(chat_id)

    async def node_addresses(self) -> tuple[str, ...]:
        return (self.address,)

    def forget(self, chat_id: ChatId) -> None:
        self.placements = self.placements[1:] or self.placements


@pytest.mark.parametrize(
    ("placements", "asked", "outcome", "reason"),
    [
        ([1, 2, 3], [1, 2], ToolOutcome.DONE, None),
        # Who knows nothing newer than the node does not ask it twice.
        ([1], [1], ToolOutcome.FAILED, "STALE_PLACEMENT"),
        ([0, 1, 2], [0, 1], ToolOutcome.FAILED, "STALE_PLACEMENT"),
    ],
)
async def test_a_call_to_a_workspace_that_was_placed_anew_follows_it_once(
    channels: Channels,
    fake: FakeToolrunner,
    placements: list[int],
    asked: list[int],
    outcome: ToolOutcome,
    reason: str | None,
) -> None:
    fake.epoch = 2
    locator = MovingSites(str(channels.address_for("any")), placements)
    attachment_store = InMemoryAttachmentStore()
    calls = Calls(
        WorkspaceTools(channels, FakeClock(), attachment_store, locator), attachment_store
    )
    found, told = await calls.call("execute", command="echo hi")
    assert (found, told.get("reason")) == (outcome, reason)
    assert [each.context.epoch for each in fake.requests] == asked
    assert sum(fake.starts.values()) == (outcome is ToolOutcome.DONE)


async def test_what_a_command_prints_sends_nobody_elsewhere(
    channels: Channels, fake: FakeToolrunner
) -> None:
    fake.scripts["fail"] = ("STALE_PLACEMENT\n", 1)
    locator = MovingSites(str(channels.address_for("any")), [0, 1])
    attachment_store = InMemoryAttachmentStore()
    calls = Calls(
        WorkspaceTools(channels, FakeClock(), attachment_store, locator), attachment_store
    )
    assert (await calls.call("execute", command="fail"))[1]["reason"] == "EXIT_CODE"
    assert len(fake.requests) == 1


async def test_output_is_read_on_from_a_cursor(calls: Calls, fake: FakeToolrunner) -> None:
    _, started = await calls.call("execute", command="serve", timeout="0s")
    fake.last().output = "one\ntwo\n"
    _, told = await calls.call(
        "process_output",
        process_id=started["process_id"],
        since=4,
        until="match:tw.",
        wait_timeout="3s",
    )
    assert (told["command"], told["output"], told["next_cursor"]) == ("serve", "two\n", 8)
    assert fake.requests[-1].condition == process_pb2.WaitCondition(
        until=process_pb2.WAIT_UNTIL_MATCH, pattern="tw.", max_wait_ms=3000
    )


async def test_a_lost_read_of_output_is_no_lost_process(calls: Calls, fake: FakeToolrunner) -> None:
    _, started = await calls.call("execute", command="serve", timeout="0s")
    fake.down.update({"look": 1})
    outcome, told = await calls.call("process_output", process_id=started["process_id"])
    assert (outcome, told["process_id"]) == (ToolOutcome.DONE, started["process_id"])


async def test_a_lost_process_is_explained(calls: Calls, fake: FakeToolrunner) -> None:
    _, started = await calls.call("execute", command="serve", timeout="0s")
    fake.last().process.state = process_pb2.PROCESS_STATE_LOST
    fake.last().process.lost_reason = process_pb2.PROCESS_LOST_REASON_RUNNER_RESTARTED
    outcome, told = await calls.call("process_output", process_id=started["process_id"])
    assert (outcome, told["reason"]) == (ToolOutcome.UNKNOWN, "PROCESS_LOST")
    assert "restarted" in told["error"]


async def test_a_write_whose_answer_is_lost_is_not_written_twice(
    calls: Calls, fake: FakeToolrunner
) -> None:
    _, started = await calls.call("execute", command="serve", timeout="0s", keep_stdin_open=True)
    arguments = json.dumps({"process_id": started["process_id"], "text": "yes\n"})
    execution = await calls.execution("process_write", arguments)
    fake.lost["WriteStdin"] = 1
    with pytest.raises(ExecutorUnreachable):
        await calls.carried_out(execution)
    outcome, told = await calls.carried_out(execution)
    assert (outcome, told["output"], fake.last().written) == (
        ToolOutcome.DONE,
        "got yes\n",
        b"yes\n",
    )


async def test_processes_are_listed_with_what_was_left_out(
    calls: Calls, fake: FakeToolrunner
) -> None:
    for command in ("echo hi", "serve", "serve"):
        await calls.call("execute", command=command, timeout="0s")
    _, told = await calls.call("process_list", limit=2)
    assert [(each["command"], each["running"]) for each in told["processes"]] == [
        ("echo hi", False),
        ("serve", True),
    ]
    assert told["truncation"] == {"omitted_processes": 1}
    _, running = await calls.call("process_list", only_running=True)
    assert running["total"] == 2


async def test_a_signal_tells_how_the_process_ended(calls: Calls, fake: FakeToolrunner) -> None:
    _, started = await calls.call("execute", command="serve", timeout="0s")
    signalling = {"process_id": started["process_id"], "signal": "terminate", "kill_after": "5s"}
    outcome, told = await calls.call("process_signal", **signalling)
    assert (outcome, told["signal"], told["shell_exit_code"], told["exit_code"]) == (
        ToolOutcome.DONE,
        "SIGTERM",
        143,
        None,
    )
    outcome, told = await calls.call("process_signal", **signalling)
    assert (outcome, told) == (
        ToolOutcome.FAILED,
        {
            "ok": False,
            "error": "refused: process_not_running",
            "reason": "PROCESS_NOT_RUNNING",
            "hint": "It ended already; process_output with this process_id shows how.",
        },
    )


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("execute", {"command": " "}, "it is empty"),
        ("execute", {"command": "a\0b"}, "NUL"),
        ("execute", {"command": '["ls"]'}, "no shell can run"),
        ("execute", {"command": "x" * 200_000}, "more than"),
        ("execute", {"command": "ls", "timeout": "soon"}, "is not a duration"),
        ("execute", {"command": "ls", "env": {"A=B": "c"}}, "'A=B' is no name of a variable"),
        ("execute", {"command": "ls", "env": {"": "c"}}, "'' is no name of a variable"),
        ("process_output", {"process_id": "p", "until": "done"}, "nothing to wait for"),
        ("process_output", {"process_id": "p", "until": "match:"}, "nothing to wait for"),
        ("process_write", {"process_id": "p"}, "nothing to write"),
        ("process_signal", {"process_id": "p", "signal": "kill", "kill_after": "2m"}, "60s"),
    ],
)
async def test_arguments_that_cannot_be_used_start_nothing(
    calls: Calls, fake: FakeToolrunner, name: str, arguments: dict[str, object], reason: str
) -> None:
    outcome, told = await calls.call(name, **arguments)
    assert (outcome, told["ok"], told["reason"]) == (
        ToolOutcome.FAILED,
        False,
        "INVALID_ARGUMENTS",
    )
    assert reason in told["error"]
    assert told["hint"].startswith("Nothing ran: ")
    assert fake.requests == []
