"""Whole processes that die, stop, drain or starve: rows A11, A17, A19, A20, B4, B5, H22 and H28."""

import asyncio
import random  # noqa: TID251 (a test chooses its chance)
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psutil
import pytest

from parley.testing.faultpoints import Action
from support.faults.delegating_server import calling, delegating
from support.faults.lab import ONCE, FaultLab
from support.faults.marked_calls import MarkedCalls
from support.faults.recording_clients import Records, recording
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

GONE_S = 60.0
KILL_EVERY_S = 2.5
KILLS_S = 150.0
ANSWERED_S_MAX = 240.0
KILLS_SHORT_S = 15.0
SERVICES = ("chatd", "toolrunner", "mcpgateway", "gateway")
RUNNING = "run: echo @ >> runs; sleep 1; seq 1 9"
VERSIONS = """
    SELECT e.chat_id::text, e.snapshot_version, e.owner_epoch, count(m.id)
    FROM chat.chat_exec e LEFT JOIN chat.chat_messages m ON m.chat_id = e.chat_id
    WHERE e.chat_id = ANY ($1::uuid[]) GROUP BY 1, 2, 3 ORDER BY 1
"""


@contextmanager
def stopped(processes: list[psutil.Process]) -> Iterator[None]:
    """Stop processes and let them go on, the last one first."""
    try:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        yield
    finally:
        for process in reversed(processes):
            with suppress(psutil.NoSuchProcess):
                process.resume()


@pytest.mark.row("A11")
async def test_a11_all_chats_go_on_after_every_chatd_was_gone(lab: FaultLab) -> None:
    gone_s = GONE_S if lab.is_full else 2.0
    async for fault in faults(lab, chats=4 * lab.chats_per_fault):
        chat_ids = await fault.load(await lab.client())
        with stopped([lab.stack.supervisor()]):
            for process in lab.processes():
                process.kill()
            fault.trial(len(chat_ids))
            await lab.sleep(gone_s)
        back_s = time.monotonic()
        await lab.until_whole()
        lab.row.figures["processes_back_s"].append(time.monotonic() - back_s)
        await fault.until_all(lambda state: state.address is not None or state.is_at_rest, "owners")
        lab.row.figures["all_resumed_s"].append(time.monotonic() - back_s)


@pytest.mark.row("A17")
async def test_a17_a_process_that_was_stopped_finds_its_chats_taken_and_does_nothing(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        third = max(1, fault.size // 3)
        pattern = "run: echo @ >> runs; sleep 4; seq 1 9"
        executing = await fault.create_all(here, fault.texts(pattern, third))
        await until_marked(fault, executing)
        lab.points.arm("tools.execute", Action.HOLD, pid=victim.pid)
        dispatched = await fault.create_all(
            here, fault.texts("run: echo @ >> runs; seq 1 9", third)
        )
        await fault.until_held("tools.execute", dispatched)
        await fault.create_all(here, fault.texts("count to 60, @", third))
        stopped_s = time.monotonic()
        victim.send(signal.SIGSTOP)
        try:
            fault.trial(len(fault.chat_ids))
            await fault.measure_takeover(await lab.states(fault.chat_ids), stopped_s)
            await fault.at_rest()
            await lab.sleep(max(0.0, 2 * lab.lease_s - (time.monotonic() - stopped_s)))
            before = await lab.query(VERSIONS, fault.chat_ids)
            lab.points.disarm()
        finally:
            victim.send(signal.SIGCONT)
        await lab.sleep(3.0)
        after = await lab.query(VERSIONS, fault.chat_ids)
        stale = sum(one != other for one, other in zip(before, after, strict=True))
        lab.row.counts["stale_effects"] += stale
        if stale:
            lab.row.problems.append(f"a stale owner moved {stale} chats")


@pytest.mark.row("A19")
async def test_a19_everything_is_stopped_in_turn_and_no_message_is_lost(lab: FaultLab) -> None:
    async for fault in faults(lab, chats=4 * lab.chats_per_fault):
        async with asyncio.TaskGroup() as tasks:
            loading = tasks.create_task(load_for_ever(fault))
            for service in SERVICES:
                for process in lab.processes(service):
                    await lab.sleep(0.5)
                    owned = await owned_by(fault, process.address)
                    fault.trial(len(await running_of(fault)))
                    process.send(signal.SIGTERM)
                    ended_s = time.monotonic()
                    await fault.measure_takeover(await lab.states(owned), ended_s)
                    await until_replaced(lab, service, process.pid)
                    lab.row.figures[f"{service}_back_s"].append(time.monotonic() - ended_s)
            loading.cancel()
        late = [value for value in lab.row.figures["takeover_s"] if value > 2.0]
        lab.row.counts["takeovers_over_2_s"] = len(late)


@pytest.mark.short
@pytest.mark.row("A20")
async def test_a20_chats_that_run_tools_survive_kills_of_random_services(lab: FaultLab) -> None:
    kills_s = KILLS_S if lab.is_full else KILLS_SHORT_S
    count = 40 if lab.is_full else 2 * lab.trials_wanted
    rng = random.Random(lab.row.row)
    async for fault in faults(lab):
        calls = MarkedCalls(fault)
        async with delegating(lab, calls.mark), recording(fault) as records:
            async with asyncio.TaskGroup() as tasks:
                loading = [
                    tasks.create_task(TALKS[place % len(TALKS)](fault, records))
                    for place in range(count)
                ]
                await kill_at_random(lab, rng, kills_s)
                for each in loading:
                    each.cancel()
            killed_s = time.monotonic()
            await lab.until(partial(all_accept, lab), "every process")
            await lab.until_whole()
            states = await fault.at_rest(180)
            lab.row.figures["rest_after_s"].append(time.monotonic() - killed_s)
            fault.trial(len(fault.chat_ids))
            lab.row.counts["innocents_parked"] += sum(
                state.status == "error" for state in states.values()
            )
        await calls.check()
    counts = lab.row.counts
    assert counts["mcp_done"] > 0
    assert counts["stream_openings"] > 0
    assert (counts["stream_gaps"], counts["stream_repeats"]) == (0, 0)


@pytest.mark.row("B4")
async def test_b4_a_machine_that_was_suspended_goes_on_without_doing_anything_twice(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        chat_ids = await fault.load(await lab.client())
        await lab.sleep(0.5)
        with stopped(lab.stack.everyone()):
            fault.trial(len(chat_ids))
            await lab.sleep(2 * lab.lease_s)
        woken_s = time.monotonic()
        await fault.at_rest()
        lab.row.figures["rest_after_s"].append(time.monotonic() - woken_s)


@pytest.mark.row("B5")
async def test_b5_many_chats_on_one_core_lose_no_lease(lab: FaultLab) -> None:
    count = 200 if lab.is_full or lab.trials_wanted > 10 else 20
    async for fault in faults(lab, chats=count):
        everyone = lab.stack.everyone()
        for process in everyone:
            with suppress(psutil.NoSuchProcess):
                process.cpu_affinity([0])
        began_s = time.monotonic()
        client = await lab.client()
        for start in range(0, count, 20):
            await fault.create_all(client, fault.texts("count to 30, @", min(20, count - start)))
        fault.trial(count)
        states = await fault.at_rest(180)
        lab.row.figures["all_done_s"].append(time.monotonic() - began_s)
        for process in everyone:
            with suppress(psutil.NoSuchProcess):
                process.cpu_affinity(list(range(psutil.cpu_count() or 1)))
        # Every takeover, and every runner that lost its lease, moves the epoch on.
        moved = sum(state.owner_epoch > 1 for state in states.values())
        lab.row.counts["false_takeovers"] += moved
        if moved:
            lab.row.problems.append(f"{moved} chats changed their owner")


@pytest.mark.row("H22")
async def test_h22_a_message_sent_at_any_moment_of_a_start_is_delivered_or_refused(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        for process in lab.processes():
            process.kill()
        client = await lab.client()
        addresses = lab.addresses
        keyed: dict[str, str] = {}
        killed_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for place, text in enumerate(fault.texts("repeat after me: @")):
                key = lab.unique()
                keyed[key] = text
                if place % 3:
                    one = await lab.client(addresses[place % len(addresses)], patience=ONCE)
                    tasks.create_task(fault.create(one, text, key=key))
                else:
                    tasks.create_task(fault.create_by_http(text, key=key))
                await lab.sleep(4.0 / fault.size)
        lab.row.counts["accepted_while_starting"] += len(fault.chat_ids)
        lab.row.figures["sent_for_s"].append(time.monotonic() - killed_s)
        fault.trial(len(keyed))
        for place, (key, text) in enumerate(keyed.items()):
            again = fault.create(client, text, key=key)
            if not place % 3:
                again.close()
                again = until_created(fault, text, key)
            assert await again is not None


@pytest.mark.row("H28")
async def test_h28_a_run_whose_owner_died_blocks_no_queue_and_is_in_the_log(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        chat_ids = await fault.create_all(here, fault.texts("count to 100, @"))
        for chat_id in chat_ids:
            for text in fault.texts("repeat after me: @", 2):
                await fault.send(here, chat_id, text)
        victim.kill()
        killed_s = time.monotonic()
        fault.trial(len(chat_ids))
        await fault.at_rest()
        lab.row.figures["queues_empty_s"].append(time.monotonic() - killed_s)
        logs = [lab.stack.home.log_file(each.name).read_text() for each in lab.processes()]
        unseen = [chat_id for chat_id in chat_ids if not any(chat_id in log for log in logs)]
        if unseen:
            lab.row.problems.append(f"no log line tells of the takeover of {unseen}")


async def until_marked(fault: Fault, chat_ids: list[str]) -> None:
    """Wait until the commands of these chats have left their mark."""

    async def all_run() -> bool:
        return all((fault.lab.workspace(each) / "files" / "runs").exists() for each in chat_ids)

    await fault.lab.until(all_run, "a run of every command", 30)


async def kill_at_random(lab: FaultLab, rng: random.Random, seconds: float) -> None:
    """Kill a process of a random service again and again."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        await lab.sleep(KILL_EVERY_S)
        service = rng.choice(SERVICES)
        victim = rng.choice(lab.processes(service))
        with suppress(ProcessLookupError):
            victim.kill()
            lab.row.counts[f"killed_{service}"] += 1


async def all_accept(lab: FaultLab) -> bool:
    """Return whether every process of every service takes connections."""
    return all(each.accepts() for service in SERVICES for each in lab.processes(service))


async def run_for_ever(fault: Fault, records: Records) -> None:
    """Create chats that run a command and wait for the end of each, until cancelled."""
    client = await fault.lab.client()
    while True:
        (text,) = fault.texts(RUNNING, 1)
        await until_answered(fault, await fault.create(client, text))


async def call_for_ever(fault: Fault, records: Records) -> None:
    """Do the same with chats that call an MCP tool; the first of them has a reader."""
    client, followed_id = await fault.lab.client(), None
    while True:
        chat_id = await fault.create(client, calling(fault.lab.unique()))
        if chat_id is not None and followed_id is None:
            followed_id = chat_id
            records.follow(chat_id)
        await until_answered(fault, chat_id)


async def converse_for_ever(fault: Fault, records: Records) -> None:
    """Run commands in one chat, turn after turn, while a reader follows it."""
    client, chat_id = await fault.lab.client(), None
    while True:
        (text,) = fault.texts(RUNNING, 1)
        if chat_id is None:
            chat_id = await fault.create(client, text)
            if chat_id is not None:
                records.follow(chat_id)
        else:
            await fault.send(client, chat_id, text)
        await until_answered(fault, chat_id)


async def until_answered(fault: Fault, chat_id: str | None) -> None:
    """Wait until a chat is at rest, or a moment if there is none."""
    if chat_id is None:
        await fault.lab.sleep(0.3)
        return
    began_s = time.monotonic()
    await fault.until_all(lambda state: state.is_at_rest, "rest", ANSWERED_S_MAX, [chat_id])
    fault.row.figures["answered_s"].append(time.monotonic() - began_s)


TALKS = (run_for_ever, call_for_ever, converse_for_ever)


async def load_for_ever(fault: Fault) -> None:
    """Create chats, through the gateway and without it, until cancelled."""
    client = await fault.lab.client()
    while True:
        await fault.load(client, 3)
        (text,) = fault.texts("count to 20, @", 1)
        await until_created(fault, text, fault.lab.unique())
        await fault.lab.sleep(0.3)


async def until_created(fault: Fault, text: str, key: str) -> str:
    """Create a chat through the gateway, as often as it takes."""

    async def created() -> str | None:
        return await fault.create_by_http(text, key=key)

    found = await fault.lab.until(created, "a chat", 60)
    assert found is not None
    return found


async def running_of(fault: Fault) -> list[str]:
    states = await fault.lab.states(fault.chat_ids)
    return [chat_id for chat_id, state in states.items() if not state.is_at_rest]


async def owned_by(fault: Fault, address: str) -> list[str]:
    """Return the chats that a process runs."""
    states = await fault.lab.states(fault.chat_ids)
    return [chat_id for chat_id, state in states.items() if state.address == address]


async def until_replaced(lab: FaultLab, service: str, pid: int) -> None:
    """Wait until a process is gone and another one answers in its place."""

    async def is_replaced() -> bool:
        found = lab.processes(service)
        return pid not in [each.pid for each in found] and all(each.accepts() for each in found)

    await lab.until(is_replaced, f"another {service}", 60)
    if service == "chatd":
        await lab.until_whole()
