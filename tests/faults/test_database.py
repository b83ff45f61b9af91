"""The database restarts, loses sessions and forgets listeners: rows A20 to A24."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from functools import partial

import asyncpg
import psutil
import pytest

from parley.client import Parley
from parley.testing.faultpoints import Action
from support.faults.lab import ONCE, FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

#: The point that chats are held at -> what is said to them.
PHASES = {
    "SendMessage.before": "count to 5, @",
    "SendMessage.after": "count to 5, @",
    "model.asked": "count to 5, @",
    "model.event": "count to 30, @",
    "FinishTurn.before": "count to 5, @",
    "CommitStep.before": "run: echo @ >> runs; seq 1 9",
    "tools.execute": "run: echo @ >> runs; seq 1 9",
    "RecordResult.before": "run: echo @ >> runs; seq 1 9\nand run: sleep 0.5",
    "CommitResults.before": "run: echo @ >> runs; seq 1 9",
    "FinishInterruption.before": "count to 400, @",
    "CommitCompaction.before": "",
}
EXECUTING = "run: echo @ >> runs; sleep 2; seq 1 9"
LISTENERS = "FROM pg_stat_activity WHERE application_name LIKE '% listen'"


async def hit_in_every_phase(
    lab: FaultLab, fault: Fault, hit: Callable[[], Awaitable[None]]
) -> None:
    """Let chats stand in every phase of a turn when the database is hit."""
    client = await lab.client()
    once = await lab.client(*lab.addresses, patience=ONCE)
    each = max(1, fault.size // len(PHASES))
    chats = {
        point: await fault.create_all(client, fault.texts("repeat after me: @", each))
        for point in PHASES
    }
    await fault.at_rest()
    for point, chat_ids in chats.items():
        nth = 5 if point == "model.event" else 1
        lab.points.arm(point, Action.HOLD, subjects=tuple(chat_ids), nth=nth)
    keyed = {
        chat_id: (lab.unique(), fault.texts(PHASES[point], 1)[0])
        for point, chat_ids in chats.items()
        for chat_id in chat_ids
        if PHASES[point]
    }
    async with asyncio.TaskGroup() as tasks:
        for chat_id, (key, text) in keyed.items():
            tasks.create_task(fault.send(once, chat_id, text, key=key))
        await fault.create_all(client, fault.texts(EXECUTING, each))
        for chat_id in chats["CommitCompaction.before"]:
            await client.manage.compact(chat_id)
        for chat_id in chats["FinishInterruption.before"]:
            fault.expect(chat_id).may_be_cut = True
            await until_sent(fault, chat_id)
            await client.interrupt(chat_id)
        for point, chat_ids in chats.items():
            await fault.until_held(point, chat_ids)
        fault.trial(len(fault.chat_ids))
        hit_s = time.monotonic()
        await hit()
        if fault.number % 2 == 0:
            lab.points.disarm()  # Everybody meets the outage; else only what comes after it.
        await lab.query("SELECT 1")
        lab.row.figures["accepting_s"].append(time.monotonic() - hit_s)
        lab.points.disarm()
    for chat_id, (key, text) in keyed.items():
        assert await fault.send(client, chat_id, text, key=key)
    await fault.at_rest()
    lab.row.figures["all_at_rest_s"].append(time.monotonic() - hit_s)


async def until_sent(fault: Fault, chat_id: str) -> None:
    await fault.until_all(lambda state: state.status == "running", "a run", 20, [chat_id])


async def postmaster(lab: FaultLab) -> psutil.Process:
    """Return the parent of our own backend."""
    (row,) = await lab.query("SELECT pg_backend_pid() AS pid")
    parent = psutil.Process(row["pid"]).parent()
    assert parent is not None
    return parent


async def restart(lab: FaultLab, number: signal.Signals) -> None:
    """End the server; its supervisor starts it again."""
    server = await postmaster(lab)
    server.send_signal(number)
    server.wait(10)


@pytest.mark.row("A20")
@pytest.mark.short
async def test_a20_no_phase_of_a_turn_minds_an_immediate_restart(lab: FaultLab) -> None:
    async for fault in faults(lab, chats=2 * lab.chats_per_fault):
        await hit_in_every_phase(lab, fault, lambda: restart(lab, signal.SIGQUIT))


@pytest.mark.row("A21")
async def test_a21_no_phase_of_a_turn_minds_a_fast_restart(lab: FaultLab) -> None:
    async for fault in faults(lab, chats=2 * lab.chats_per_fault):
        await hit_in_every_phase(lab, fault, lambda: restart(lab, signal.SIGINT))


@pytest.mark.row("A22")
async def test_a22_no_phase_of_a_turn_minds_a_server_that_was_killed(lab: FaultLab) -> None:
    async for fault in faults(lab, chats=2 * lab.chats_per_fault):
        await hit_in_every_phase(lab, fault, lambda: restart(lab, signal.SIGKILL))


@pytest.mark.row("A23")
async def test_a23_no_phase_of_a_turn_minds_one_killed_session(lab: FaultLab) -> None:
    async def kill_one() -> None:
        rows = await lab.query(
            "SELECT pid FROM pg_stat_activity WHERE usename = 'parley_chatd' ORDER BY pid LIMIT 1"
        )
        os.kill(rows[0]["pid"], signal.SIGKILL)

    async for fault in faults(lab, chats=2 * lab.chats_per_fault):
        await hit_in_every_phase(lab, fault, kill_one)


@pytest.mark.short
@pytest.mark.row("A24")
async def test_a24_news_arrives_soon_although_every_listener_was_lost(lab: FaultLab) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        others = [address for address in lab.addresses if address != victim.address]
        here, elsewhere = await lab.client(victim.address), await lab.client(*others)
        # The row before may have restarted the server, and a process takes calls before it listens.
        await lab.until(partial(listeners, lab), "a listener of every process")
        chat_ids = await fault.create_all(here, fault.texts("count to 400, @"))
        await lab.sleep(0.3)
        ended = await lab.query(f"SELECT pg_terminate_backend(pid) {LISTENERS}")
        assert len(ended) >= len(lab.addresses)
        async with asyncio.TaskGroup() as tasks:
            for chat_id in chat_ids:
                fault.expect(chat_id).may_be_cut = True
                tasks.create_task(measure_interrupt(fault, elsewhere, chat_id))
        fault.trial(len(chat_ids))
    assert max(lab.row.figures["delay_s"]) < 5.0 + lab.lease_s / 3


async def listeners(lab: FaultLab) -> "list[asyncpg.Record]":
    """Return the connections that listen, once there are as many as processes."""
    found = await lab.query(f"SELECT pid {LISTENERS}")
    return found if len(found) >= len(lab.addresses) else []


async def measure_interrupt(fault: Fault, client: Parley, chat_id: str) -> None:
    """Note how long an owner takes to hear of an interrupt that another process took."""
    await client.interrupt(chat_id)
    accepted_s = time.monotonic()
    await fault.until_all(lambda state: state.is_at_rest, "a stop", 30, [chat_id])
    fault.row.figures["delay_s"].append(time.monotonic() - accepted_s)
