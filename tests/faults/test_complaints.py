"""What users of such programs complain about: rows H1, H6, H7, H20, H25 and H27."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

import psutil
import pytest

from parley.client import (
    ErrorKind,
    HistoryReset,
    Message,
    MessageCommitted,
    Parley,
    Resync,
    StatusChanged,
    ToolOutcome,
    ToolResult,
)
from parley.testing.faultpoints import Action
from support.faults.delegating_server import calling, delegating
from support.faults.lab import ChatdProcess, FaultLab
from support.faults.trials import REST_S_MAX, Fault, faults

pytestmark = pytest.mark.slow

TURNS = 1000
COMPACTIONS_MAX = 3
SUMMARIES = """
    SELECT count(*) FROM chat.chat_messages
    WHERE chat_id = $1 AND is_compressed AND visibility = 'model' AND NOT is_deleted
"""


@pytest.mark.row("H1")
async def test_h1_a_chat_is_at_rest_after_every_one_of_many_turns(lab: FaultLab) -> None:
    turns = TURNS if lab.trials_wanted >= 50 else 20
    async for fault in faults(lab):
        client = await lab.client()
        chat_ids = await fault.create_all(client, fault.texts("repeat after me: @"))
        for _ in range(turns // (lab.trials_wanted or 1)):
            async with asyncio.TaskGroup() as tasks:
                for chat_id in chat_ids:
                    (text,) = fault.texts("repeat after me: @", 1)
                    tasks.create_task(fault.send(client, chat_id, text))
            for chat_id in chat_ids:
                await client.answer(chat_id, within_s=30)
        fault.trial(len(chat_ids))
        states = await fault.at_rest(10)
        assert {state.status for state in states.values()} == {"waiting"}
        lab.row.counts["turns"] += len(fault.history.operations)


@pytest.mark.row("H6")
async def test_h6_a_history_that_never_fits_is_summarised_at_most_three_times(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        # A crash in between must not make the count begin anew.
        lab.points.arm("CommitCompaction.after", Action.HOLD, pid=victim.pid)
        chat_ids = await fault.create_all(here, fault.texts("use 95 tokens of 100, @"))
        for chat_id in chat_ids:
            fault.expect(chat_id).may_fail = True
            fault.expect(chat_id).may_be_cut = True
        await fault.kill_held(victim, "CommitCompaction.after", chat_ids)
        await fault.at_rest()
        for chat_id in chat_ids:
            ((summaries,),) = await lab.query(SUMMARIES, chat_id)
            lab.row.figures["summaries"].append(summaries)
            if not 0 < summaries <= COMPACTIONS_MAX:
                lab.row.problems.append(f"{chat_id}: {summaries} summaries")


@pytest.mark.row("H7")
async def test_h7_work_that_does_not_fit_ends_with_an_error_that_says_so(lab: FaultLab) -> None:
    async for fault in faults(lab):
        client = await lab.client()
        # The summary repeats what was asked for, so every step begins over the limit again.
        text = "use 95 tokens of 100, @\nrun: seq 1 9\nrun: seq 1 9"
        chat_ids = await fault.create_all(client, fault.texts(text))
        for chat_id in chat_ids:
            fault.expect(chat_id).may_fail = True
            fault.expect(chat_id).may_be_cut = True
        fault.trial(len(chat_ids))
        await fault.at_rest()
        for chat_id in chat_ids:
            error = (await client.get_chat(chat_id)).last_error
            if error is None or error.kind is not ErrorKind.CONTEXT_OVERFLOW:
                lab.row.problems.append(f"{chat_id}: ended with {error}")


@pytest.mark.short
@pytest.mark.row("H20")
async def test_h20_a_reader_who_stayed_through_a_crash_has_the_whole_history(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here, client = await lab.client(victim.address), await lab.client()
        chat_ids = await fault.create_all(here, fault.texts("count to 40, @"))
        async with asyncio.TaskGroup() as tasks:
            readers = {
                chat_id: tasks.create_task(followed(client, chat_id)) for chat_id in chat_ids
            }
            for chat_id in chat_ids:
                for text in fault.texts("repeat after me: @", 4):
                    await fault.send(client, chat_id, text)
            await lab.sleep(0.5)
            victim.kill()
            fault.trial(len(chat_ids))
        for chat_id, reader in readers.items():
            listed = shown(await fault.messages(chat_id))
            if reader.result() != listed:
                lab.row.problems.append(f"{chat_id}: saw {reader.result()}, stored is {listed}")
            if len(listed) != 10:
                lab.row.problems.append(f"{chat_id}: {len(listed)} messages of 10")


async def followed(client: Parley, chat_id: str) -> list[tuple[int, str, str]]:
    """Return the history as a reader has put it together when all turns are over."""
    messages: dict[int, Message] = {}
    async with aclosing(client.follow(chat_id)) as events, asyncio.timeout(60):
        async for event in events:
            match event:
                case MessageCommitted(message=message):
                    messages[message.id] = message
                case HistoryReset() | Resync():
                    messages.clear()
                case StatusChanged(status=status):
                    if status == "waiting" and len(messages) >= 10:
                        break
                case _:
                    pass
    return shown([messages[number] for number in sorted(messages)])


def shown(messages: Sequence[Message]) -> list[tuple[int, str, str]]:
    """Return what people see of messages."""
    return [(message.id, message.role.value, message.text) for message in messages]


@pytest.mark.row("H25")
async def test_h25_a_very_long_tool_runs_once_although_its_chat_changes_owners(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        began_s = time.monotonic()
        chat_ids = await fault.create_all(here, fault.texts("run: echo @ >> runs; sleep 600"))

        async def all_run(chat_ids: list[str] = chat_ids) -> bool:
            return all((lab.workspace(each) / "files" / "runs").exists() for each in chat_ids)

        await lab.until(all_run, "a run of every command", 30)
        victim.kill()
        fault.trial(len(chat_ids))
        await fault.at_rest()
        lab.row.figures["turn_s"].append(time.monotonic() - began_s)
        for chat_id in chat_ids:
            sleeping = processes_in(str(lab.workspace(chat_id)))
            asleep = [each for each in sleeping if each.name() == "sleep"]
            if len(asleep) != 1:
                lab.row.problems.append(f"{chat_id}: {len(asleep)} of its commands run")
            for process in sleeping:
                process.kill()


def processes_in(directory: str) -> list[psutil.Process]:
    """Return the processes that work below a directory."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd().startswith(directory):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.mark.row("H27")
async def test_h27_steps_that_were_done_are_not_done_again_by_the_next_owner(
    lab: FaultLab,
) -> None:
    steps = "\n".join(f"run: echo @-{number} >> runs; seq 1 9" for number in range(4))
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        lab.points.arm("tools.execute", Action.HOLD, pid=victim.pid, nth=3)
        chat_ids = await fault.create_all(here, fault.texts(steps))
        await fault.kill_held(victim, "tools.execute", chat_ids)
        await fault.at_rest()
        for chat_id in chat_ids:
            runs = (lab.workspace(chat_id) / "files" / "runs").read_text().split()
            numbers = [int(run.rpartition("-")[2]) for run in runs]
            results = sum(
                isinstance(part, ToolResult)
                for message in await fault.messages(chat_id)
                for part in message.content
            )
            if numbers != [0, 1, 2, 3] or results != 4:
                lab.row.double_executions += max(0, len(numbers) - 4)
                lab.row.problems.append(f"{chat_id}: ran {numbers}, has {results} results")


@pytest.mark.row("H27/children")
@pytest.mark.parametrize(
    "is_shared",
    [False, pytest.param(True, marks=pytest.mark.short)],
    ids=["other_owner", "same_owner"],
)
async def test_h27_what_another_chat_did_for_a_call_is_not_done_again_by_the_next_owner(
    lab: FaultLab, is_shared: bool
) -> None:
    script = "\n".join(f"run: echo @-{number} >> runs; seq 1 9" for number in range(4))
    async for fault in faults(lab):
        victim = await lab.victim()
        others = [each for each in lab.processes() if each.address != victim.address]
        beneath = victim if is_shared else others[0]
        children: defaultdict[str, list[str]] = defaultdict(list)
        async with delegating(lab, partial(delegate, fault, beneath, children)):
            lab.points.arm("tools.execute", Action.HOLD, pid=beneath.pid, nth=3)
            here = await lab.client(victim.address)
            scripts = fault.texts(script)
            parents = await fault.create_all(here, [calling(each) for each in scripts])
            # The children stand at their third call when the owner of their parents dies.
            await fault.until_many_held("tools.execute", len(parents))
            before = await lab.states(parents)
            victim.kill()
            killed_s = time.monotonic()
            fault.trial(len(parents))
            await fault.measure_takeover(before, killed_s)
            lab.points.disarm()
            for parent in parents:
                # It has a call and an answer, which the check does not know from its message.
                fault.expect(parent).may_be_cut = True
            await fault.at_rest()
        for parent in parents:
            await check_parent(fault, parent)
        for each in scripts:
            await check_children(fault, children[each])


async def delegate(
    fault: Fault, beneath: ChatdProcess, children: dict[str, list[str]], script: str
) -> str:
    """Do what a tool is called for in a new chat, as any internal caller would."""
    child_id = await fault.create(await fault.lab.client(beneath.address), script)
    assert child_id is not None
    children[script].append(child_id)
    return await (await fault.lab.client()).answer(child_id, within_s=REST_S_MAX)


async def check_parent(fault: Fault, chat_id: str) -> None:
    """Require that its one call has one result, and that this is the answer of its child."""
    results = [
        part
        for message in await fault.messages(chat_id)
        for part in message.content
        if isinstance(part, ToolResult)
    ]
    outcomes = [part.outcome for part in results]
    if outcomes != [ToolOutcome.DONE] or "That is all the demo does." not in str(results[0]):
        fault.row.problems.append(f"{chat_id}: its call has {results}")


async def check_children(fault: Fault, chat_ids: list[str]) -> None:
    """Require that one chat did it, each of its steps once."""
    runs = [(fault.lab.workspace(each) / "files" / "runs").read_text() for each in chat_ids]
    numbers = [int(run.rpartition("-")[2]) for text in runs for run in text.split()]
    if len(chat_ids) != 1 or numbers != [0, 1, 2, 3]:
        fault.row.double_executions += max(0, len(numbers) - 4)
        fault.row.problems.append(f"{chat_ids}: ran {numbers}")
