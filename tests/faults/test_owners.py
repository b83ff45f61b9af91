"""The process that runs a chat dies in each phase of a turn: rows A3 to A7, A9 and A10."""

import json
import signal
import time
from collections.abc import Callable

import psutil
import pytest

from chatd.workers.domain import PARKING_TAKEOVERS
from parley.cli.supervision.death_reports import RpcDeathReports
from parley.client import ToolResult
from parley.testing.faultpoints import Action
from support.cli.recorded_progress import RecordedProgress
from support.faults.lab import ChatdProcess, FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

WORKER_AT = """
    SELECT id::text FROM chat.workers WHERE address = $1 AND ended_at IS NULL
    ORDER BY started_at DESC LIMIT 1
"""
RUN_ONCE = "run: echo @ >> runs; seq 1 50"
#: Only a result that has to wait for another is recorded by itself.
RUN_TWO = "run: echo @ >> runs; seq 1 50\nand run: sleep 0.5"


async def kill_at(
    lab: FaultLab, fault: Fault, point: str, pattern: str, *, nth: int = 1
) -> ChatdProcess:
    """Kill the owner of chats that all stand at a point, and see who takes them."""
    victim = await lab.victim()
    lab.points.arm(point, Action.HOLD, pid=victim.pid, nth=nth)
    chat_ids = await fault.create_all(await lab.client(victim.address), fault.texts(pattern))
    await fault.until_held(point, chat_ids)
    await kill(lab, fault, victim)
    return victim


async def kill(
    lab: FaultLab,
    fault: Fault,
    victim: ChatdProcess,
    *,
    meanwhile: Callable[[Fault], None] | None = None,
) -> None:
    """Kill a process; all chats of the fault are its own, and nobody's for a while."""
    before = await lab.states(fault.chat_ids)
    assert {state.address for state in before.values()} == {victim.address}
    victim.kill()
    killed_s = time.monotonic()
    fault.trial(len(before))
    lab.points.disarm()
    if meanwhile is not None:
        meanwhile(fault)
    await fault.measure_takeover(before, killed_s)


@pytest.mark.row("A3")
async def test_a3_an_owner_killed_before_the_first_token_is_followed_by_another(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        await kill_at(lab, fault, "model.asked", "count to 10, @")


@pytest.mark.row("A4")
@pytest.mark.parametrize(
    "nth", [pytest.param(1, marks=pytest.mark.short), 15, 30], ids=["first", "half", "last"]
)
async def test_a4_an_answer_cut_while_it_streams_is_given_once_and_complete(
    lab: FaultLab, nth: int
) -> None:
    async for fault in faults(lab):
        await kill_at(lab, fault, "model.event", "count to 30, @", nth=nth)


@pytest.mark.short
@pytest.mark.row("A5")
async def test_a5_a_call_that_was_dispatched_and_never_left_is_executed_once(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        await kill_at(lab, fault, "tools.execute", RUN_ONCE)
        await fault.at_rest()
        require_all_done(fault)
    assert lab.row.counts["tool_done"] == lab.row.trials


@pytest.mark.row("A6")
@pytest.mark.parametrize("is_ended", [True, False], ids=["ended_meanwhile", "still_running"])
async def test_a6_a_call_that_runs_is_attached_to_and_its_output_is_complete(
    lab: FaultLab, is_ended: bool
) -> None:
    # It ends when it is told to, not by the time: a busy machine may need long to start them all.
    wait = "until [ -e enough ]; do sleep 0.1; done"
    pattern = f"run: echo @ >> runs; seq 1 500; {wait}; seq 501 1000"
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        await fault.create_all(here, fault.texts(pattern))
        await lab.until(lambda fault=fault: all_started(fault), "a run of every command")  # type: ignore[misc]
        await kill(lab, fault, victim, meanwhile=end_commands if is_ended else None)
        if not is_ended:
            end_commands(fault)
        await fault.at_rest()
        for chat_id in fault.chat_ids:
            output = [int(word) for word in (await output_of(fault, chat_id)).split()]
            missing = len(set(range(1, 1001)) - set(output))
            lab.row.figures["lost_lines"].append(missing)
            if missing or len(output) != 1000:
                lab.row.problems.append(f"{chat_id}: {missing} lines of output are gone")


@pytest.mark.row("A7")
@pytest.mark.parametrize(
    "point",
    [
        pytest.param("tools.executed", marks=pytest.mark.short),
        "RecordResult.before",
        "RecordResult.after",
        "CommitResults.before",
        "CommitResults.after",
    ],
)
async def test_a7_a_result_that_was_not_committed_is_fetched_again_and_not_made_again(
    lab: FaultLab, point: str
) -> None:
    async for fault in faults(lab):
        text = RUN_TWO if point.startswith("RecordResult") else RUN_ONCE
        await kill_at(lab, fault, point, text)


@pytest.mark.row("A9")
@pytest.mark.parametrize(
    "point",
    [
        "model.event",
        pytest.param("CommitCompaction.before", marks=pytest.mark.short),
        "CommitCompaction.after",
    ],
)
async def test_a9_a_summary_that_is_cut_leaves_the_history_whole(lab: FaultLab, point: str) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        chat_ids = await fault.create_all(here, fault.texts("repeat after me: @"))
        await fault.at_rest()
        lab.points.arm(point, Action.HOLD, pid=victim.pid)
        for chat_id in chat_ids:
            await here.manage.compact(chat_id)
        await fault.until_held(point, chat_ids)
        await kill(lab, fault, victim)
        await fault.at_rest()
        client = await lab.client()
        for chat_id in chat_ids:
            summaries = [each for each in await fault.messages(chat_id) if each.is_compressed]
            lab.row.counts["summaries"] += bool(summaries)
            await fault.send(client, chat_id, *fault.texts("repeat after me: @", 1))


@pytest.mark.short
@pytest.mark.row("A17E")
async def test_a17_a_stopped_process_that_was_declared_dead_does_nothing_more_and_exits(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        third = max(1, fault.size // 3)
        wait = "until [ -e enough ]; do sleep 0.1; done"
        executing = await fault.create_all(
            here, fault.texts(f"run: echo @ >> runs; {wait}; seq 1 9", third)
        )
        await lab.until(lambda fault=fault: all_started(fault), "a run of every command")  # type: ignore[misc]
        lab.points.arm("tools.execute", Action.HOLD, pid=victim.pid)
        sent = await fault.create_all(here, fault.texts(RUN_ONCE, third))
        await fault.until_held("tools.execute", sent)
        await fault.create_all(here, fault.texts("count to 60, @", fault.size - 2 * third))
        before = await lab.states(fault.chat_ids)
        victim.send(signal.SIGSTOP)
        try:
            fault.trial(len(fault.chat_ids))
            stopped_s = time.monotonic()
            await declare_dead(lab, victim)
            await fault.measure_takeover(before, stopped_s)
        finally:
            # It acts on what it knew, before its next renewal tells it that it was declared dead.
            lab.points.disarm()
            victim.send(signal.SIGCONT)
            continued_s = time.monotonic()
        end_commands(fault, executing)
        await lab.until(lambda victim=victim: is_gone(victim), "its exit", lab.lease_s)  # type: ignore[misc]
        lab.row.figures["exit_s"].append(time.monotonic() - continued_s)
        await fault.at_rest()
        require_all_done(fault, [*executing, *sent])


async def declare_dead(lab: FaultLab, victim: ChatdProcess) -> None:
    """End the worker of a process as its supervisor does, although the process lives."""
    (row,) = await lab.query(WORKER_AT, victim.address)
    home = lab.stack.home
    living = tuple(each for each in lab.addresses if each != victim.address)
    reports = RpcDeathReports(home, lab.clock, RecordedProgress())
    assert await reports.end(row["id"], living)


async def is_gone(victim: ChatdProcess) -> bool:
    return not psutil.pid_exists(victim.pid)


@pytest.mark.row("A10")
async def test_a10_a_chat_that_kills_three_owners_is_parked_and_others_are_not_hurt(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab, chats=min(5, lab.chats_per_fault)):
        victim = await lab.victim()
        client = await lab.client()
        poisoned = await fault.create_all(
            await lab.client(victim.address), fault.texts("repeat after me: @")
        )
        await fault.at_rest()
        lab.points.arm("model.asked", Action.KILL, subjects=tuple(poisoned))
        for chat_id in poisoned:
            fault.expect(chat_id).may_fail = True
            await fault.send(client, chat_id, *fault.texts("count to 5, @", 1))
        began_s = time.monotonic()
        while not all(state.is_at_rest for state in (await lab.states(poisoned)).values()):
            assert time.monotonic() < began_s + 60 + 40 * len(poisoned), await lab.states(poisoned)
            await time_of_another(fault)
        fault.trial(len(poisoned))
        lab.row.figures["parked_s"].append(time.monotonic() - began_s)
        for chat_id in poisoned:
            chat = await client.get_chat(chat_id)
            if chat.last_error is None or chat.last_error.kind != "crash_loop":
                lab.row.problems.append(f"{chat_id} was not parked: {chat}")


@pytest.mark.short
@pytest.mark.row("A10Q")
async def test_a10_one_poisonous_turn_kills_four_processes_and_no_innocent_is_parked(
    lab: FaultLab,
) -> None:
    # All of them fit into one process.
    count = 199 if lab.is_full else 4 * lab.trials_wanted
    async for fault in faults(lab, chats=lab.trials_wanted):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        (poisoned,) = await fault.create_all(here, fault.texts("repeat after me: @", 1))
        await fault.at_rest()
        lab.points.arm("model.asked", Action.HOLD, pid=victim.pid)
        fault.expect(poisoned).may_fail = True
        innocents = await fault.create_all(here, fault.texts("count to 20, @", count))
        await fault.send(here, poisoned, *fault.texts("count to 5, @", 1))
        await fault.until_held("model.asked", [poisoned, *innocents], 120)
        lab.points.arm("model.event", Action.KILL, subjects=(poisoned,))
        lab.points.release("model.asked")
        fault.trial(count)
        began_s = time.monotonic()
        await fault.at_rest(60 + 6 * count)
        lab.row.figures["all_done_s"].append(time.monotonic() - began_s)
        deaths = lab.points.visits("model.event")
        lab.row.figures["deaths"].append(deaths)
        if deaths != PARKING_TAKEOVERS:
            lab.row.problems.append(f"one turn killed {deaths} processes")
        (chat,) = [await here.get_chat(poisoned)]
        if chat.last_error is None or chat.last_error.kind != "crash_loop":
            lab.row.problems.append(f"{poisoned} was not parked: {chat}")


async def time_of_another(fault: Fault) -> None:
    """Measure a turn of a chat that kills nobody."""
    asked_s = time.monotonic()
    client = await fault.lab.client()
    chat_id = await fault.create(client, *fault.texts("repeat after me: @", 1))
    assert chat_id is not None
    await fault.until_all(lambda state: state.is_at_rest, "rest of another", 60, [chat_id])
    fault.row.figures["others_s"].append(time.monotonic() - asked_s)
    await fault.lab.sleep(0.2)


def end_commands(fault: Fault, chat_ids: list[str] | None = None) -> None:
    """Let the commands of these chats, or of all, go on to their end."""
    for chat_id in chat_ids or fault.chat_ids:
        (fault.lab.workspace(chat_id) / "files" / "enough").touch()


async def all_started(fault: Fault) -> bool:
    """Return whether the commands of all chats have left their mark."""
    workspaces = map(fault.lab.workspace, fault.chat_ids)
    return all((each / "files" / "runs").exists() for each in workspaces)


async def output_of(fault: Fault, chat_id: str) -> str:
    """Return what the first command of a chat printed."""
    results = [
        part
        for message in await fault.messages(chat_id)
        for part in message.content
        if isinstance(part, ToolResult)
    ]
    output: str = json.loads(results[0].result_json).get("output", "")
    return output


def require_all_done(fault: Fault, chat_ids: list[str] | None = None) -> None:
    """Require that the command of every chat left its mark."""
    for chat_id in chat_ids or fault.chat_ids:
        if not (fault.lab.workspace(chat_id) / "files" / "runs").exists():
            fault.row.problems.append(f"{chat_id}: the command never ran")
