"""Turns that are asked to stop while their owner dies: rows A8, H2, H5 and H21."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import psutil
import pytest

from parley.client import Parley, PartStreamed, Text, ToolOutcome, ToolResult
from parley.testing.faultpoints import Action
from support.faults.lab import ChatdProcess, FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

WRITE_EVERY_S = 0.5  # Partial answers are kept that often.
NUMBERS_PER_BEAT = 11


def others_of(lab: FaultLab, victim: ChatdProcess) -> list[str]:
    return [address for address in lab.addresses if address != victim.address]


@asynccontextmanager
async def watched(client: Parley, chat_ids: list[str]) -> AsyncIterator[dict[str, str]]:
    """Give what people see of the answers while they are written."""
    shown = dict.fromkeys(chat_ids, "")

    async def watch(chat_id: str) -> None:
        async with aclosing(client.follow(chat_id)) as events:
            async for event in events:
                if isinstance(event, PartStreamed) and isinstance(event.part, Text):
                    shown[chat_id] += event.part.text

    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(watch(chat_id)) for chat_id in chat_ids]
        yield shown
        for task in watching:
            task.cancel()


@pytest.mark.short
@pytest.mark.row("A8")
async def test_a8_what_was_said_before_an_interrupt_survives_the_death_of_who_said_it(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        elsewhere = await lab.client(*others_of(lab, victim))
        chat_ids = await fault.create_all(here, fault.texts("count to 400, @"))
        lab.points.arm("FinishInterruption.before", Action.HOLD, pid=victim.pid)
        async with watched(here, chat_ids) as shown:
            await lab.sleep(1.5)
            for chat_id in chat_ids:
                fault.expect(chat_id).may_be_cut = True
                await elsewhere.interrupt(chat_id)
            accepted_s = time.monotonic()
            await fault.until_held("FinishInterruption.before", chat_ids)
        victim.kill()
        fault.trial(len(chat_ids))
        lab.points.disarm()
        states = await fault.at_rest()
        lab.row.figures["waiting_after_s"].append(time.monotonic() - accepted_s)
        for chat_id in chat_ids:
            assert states[chat_id].status == "waiting"
            stored = "".join(
                message.text
                for message in await fault.messages(chat_id)
                if message.role == "assistant"
            )
            lost = len(shown[chat_id].split()) - len(stored.split())
            lab.row.figures["lost_characters"].append(max(0, len(shown[chat_id]) - len(stored)))
            if lost > NUMBERS_PER_BEAT or not stored:
                lab.row.problems.append(f"{chat_id}: {lost} numbers were shown and not kept")


@pytest.mark.row("H2")
@pytest.mark.parametrize("is_killed", [False, True], ids=["owner_lives", "owner_killed"])
async def test_h2_a_tool_that_hangs_is_stopped_by_an_interrupt_and_leaves_nothing_behind(
    lab: FaultLab, is_killed: bool
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        chat_ids = await fault.create_all(here, fault.texts("run: echo @ >> runs; sleep 6789"))
        await until_running(fault)
        assert not await none_sleeps(fault)
        if is_killed:
            victim.kill()
        elsewhere = await lab.client(*others_of(lab, victim))
        asked_s = time.monotonic()
        for chat_id in chat_ids:
            fault.expect(chat_id).may_be_cut = True
            await elsewhere.interrupt(chat_id)
        lab.row.figures["accepted_s"].append((time.monotonic() - asked_s) / len(chat_ids))
        fault.trial(len(chat_ids))
        states = await fault.at_rest()
        lab.row.figures["waiting_after_s"].append(time.monotonic() - asked_s)
        assert {state.status for state in states.values()} == {"waiting"}
        await lab.until(lambda fault=fault: none_sleeps(fault), "the end of every process", 10)  # type: ignore[misc]


@pytest.mark.row("H5")
async def test_h5_a_chat_with_an_interrupted_call_goes_on_with_a_whole_history(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        chat_ids = await fault.create_all(here, fault.texts("run: echo @ >> runs; sleep 6789"))
        await until_running(fault)
        for chat_id in chat_ids:
            fault.expect(chat_id).may_be_cut = True
            await here.interrupt(chat_id)
        victim.kill()
        fault.trial(len(chat_ids))
        await fault.at_rest()
        client = await lab.client()
        for chat_id in chat_ids:
            await fault.send(client, chat_id, *fault.texts("repeat after me: @", 1))
        states = await fault.at_rest()
        assert {state.status for state in states.values()} == {"waiting"}
        for chat_id in chat_ids:
            results = [
                part
                for message in await fault.messages(chat_id)
                for part in message.content
                if isinstance(part, ToolResult)
            ]
            outcomes = [result.outcome for result in results]
            if len(outcomes) != 1 or outcomes[0] is ToolOutcome.DONE:
                lab.row.problems.append(f"{chat_id}: the interrupted call has {outcomes}")


@pytest.mark.row("H21")
@pytest.mark.parametrize("is_stopped", [False, True], ids=["interrupted", "shut_down"])
async def test_h21_a_message_right_after_a_stop_keeps_what_was_said_before(
    lab: FaultLab, is_stopped: bool
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        client = await lab.client()
        here = await lab.client(victim.address)
        chat_ids = await fault.create_all(here, fault.texts("count to 60, @"))
        await lab.sleep(1.0)
        if is_stopped:
            psutil.Process(victim.pid).terminate()
        for chat_id in chat_ids:
            if not is_stopped:
                fault.expect(chat_id).may_be_cut = True
                await client.interrupt(chat_id)
            await fault.send(client, chat_id, *fault.texts("repeat after me: @", 1))
        fault.trial(len(chat_ids))
        await fault.at_rest()
        for chat_id in chat_ids:
            roles = [message.role.value for message in await fault.messages(chat_id)]
            if roles != ["user", "assistant", "user", "assistant"]:
                lab.row.problems.append(f"{chat_id}: the history is {roles}")


async def until_running(fault: Fault) -> None:
    """Wait until the command of every chat has left its mark."""

    async def all_run() -> bool:
        workspaces = map(fault.lab.workspace, fault.chat_ids)
        return all((each / "files" / "runs").exists() for each in workspaces)

    await fault.lab.until(all_run, "a run of every command", 30)


async def none_sleeps(fault: Fault) -> bool:
    """Return whether no process of the chats' workspaces is left."""
    wanted = re.compile("|".join(fault.chat_ids))
    for process in psutil.process_iter():
        try:
            if wanted.search(process.cwd()) and process.status() != psutil.STATUS_ZOMBIE:
                return False
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return True
