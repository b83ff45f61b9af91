"""Locks and a deadlock in the database: rows A27, A28 and A30."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator

import asyncpg
import pytest

from support.faults.lab import ONCE, FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

LOCK_CHATS = "SELECT 1 FROM chat.chat_exec WHERE chat_id = ANY ($1::uuid[]) FOR UPDATE"
LOCK_CHAT = "SELECT 1 FROM chat.chats WHERE id = $1 FOR UPDATE"
# Waits for a session that this one blocks, then asks for the row which that session holds. It runs
# in the server because the other session looks for deadlocks once, a second after it began to wait;
# on a machine that came too late for that there is no deadlock to find.
CLOSE_CYCLE = """
DO $$
DECLARE
    waited interval;
BEGIN
    FOR i IN 1..1000 LOOP
        SELECT max(clock_timestamp() - waitstart) INTO waited FROM pg_locks
            WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid));
        IF waited > '0.7s' THEN
            RAISE 'The send has waited for % already.', waited USING ERRCODE = '57014';
        ELSIF waited IS NOT NULL THEN
            PERFORM 1 FROM chat.chat_exec
            WHERE chat_id = current_setting('faults.chat_id')::uuid FOR UPDATE;
            RETURN;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    RAISE 'No send waited for the row.';
END $$
"""


@contextlib.asynccontextmanager
async def locked(lab: FaultLab, chat_ids: list[str]) -> AsyncIterator[None]:
    """Hold the rows of chats in a transaction."""
    connection = await lab.connected()
    async with connection.transaction():
        await connection.execute(LOCK_CHATS, chat_ids)
        yield


async def time_of_others(fault: Fault) -> None:
    """Measure turns of chats that nobody locks, until cancelled."""
    client = await fault.lab.client()
    while True:
        began_s = time.monotonic()
        chat_id = await fault.create(client, *fault.texts("repeat after me: @", 1))
        assert chat_id is not None
        await fault.until_all(lambda state: state.is_at_rest, "rest of another", 60, [chat_id])
        fault.row.figures["others_s"].append(time.monotonic() - began_s)
        await fault.lab.sleep(0.2)


@pytest.mark.row("A27")
async def test_a27_a_pool_full_of_waiting_writes_costs_no_lease(lab: FaultLab) -> None:
    count = 200 if lab.is_full else 40
    async for fault in faults(lab, chats=count):
        client = await lab.client()
        watched = await fault.create_all(client, fault.texts("count to 600, @", 3))
        for chat_id in watched:
            fault.expect(chat_id).may_be_cut = True
        chat_ids: list[str] = []
        for _ in range(0, count, 20):
            chat_ids += await fault.create_all(client, fault.texts("repeat after me: @", 20))
        await fault.until_all(lambda state: state.is_at_rest, "rest", 60, chat_ids)
        keyed = {
            chat_id: (lab.unique(), *fault.texts("repeat after me: @", 1)) for chat_id in chat_ids
        }
        async with locked(lab, chat_ids), asyncio.TaskGroup() as tasks:
            sends = [
                tasks.create_task(fault.send_by_http(chat_id, text, key))
                for chat_id, (key, text) in keyed.items()
            ]
            fault.trial(len(keyed))
            await lab.sleep(lab.lease_s + 4)
            await asyncio.wait(sends)
            answers = Counter(send.result() for send in sends)
            if set(answers) != {503}:
                lab.row.problems.append(f"answers while all was locked: {answers}")
            states = await lab.states(watched)
            lost = sum(state.owner_epoch > 1 for state in states.values())
            lab.row.counts["false_lease_losses"] += lost
            if lost:
                lab.row.problems.append(f"{lost} chats lost their owner: {states}")
        for chat_id, (key, text) in keyed.items():
            assert await fault.send(client, chat_id, text, key=key)
        for chat_id in watched:
            await client.interrupt(chat_id)


@pytest.mark.short
@pytest.mark.row("A28")
async def test_a28_a_row_that_stays_locked_is_refused_in_time_and_delays_nobody_else(
    lab: FaultLab,
) -> None:
    locked_s = 60.0 if lab.is_full else 12.0
    async for fault in faults(lab):
        client = await lab.client()
        (chat_id,) = await fault.create_all(client, fault.texts("repeat after me: @", 1))
        await fault.at_rest()
        keyed = {lab.unique(): text for text in fault.texts("repeat after me: @")}
        async with asyncio.TaskGroup() as tasks:
            others = tasks.create_task(time_of_others(fault))
            async with locked(lab, [chat_id]):
                began_s = time.monotonic()
                sends = [
                    tasks.create_task(fault.send_by_http(chat_id, text, key))
                    for key, text in keyed.items()
                ]
                fault.trial(len(sends))
                await lab.sleep(locked_s)
            await asyncio.wait(sends)
            answers = Counter(send.result() for send in sends)
            if set(answers) != {503}:
                lab.row.problems.append(f"answers while the row was locked: {answers}")
            lab.row.figures["last_answer_s"].append(time.monotonic() - began_s)
            others.cancel()
        for key, text in keyed.items():
            assert await fault.send(client, chat_id, text, key=key)


@pytest.mark.row("A30")
@pytest.mark.short
async def test_a30_a_write_that_a_deadlock_ended_is_done_again(lab: FaultLab) -> None:
    async for fault in faults(lab):
        client = await lab.client(patience=ONCE)
        chat_ids = await fault.create_all(client, fault.texts("repeat after me: @"))
        await fault.at_rest()
        for chat_id in chat_ids:
            while not await deadlock(fault, chat_id):
                pass
            fault.trial()


async def deadlock(fault: Fault, chat_id: str) -> bool:
    """Let a send and a session of ours wait for each other, so that the send is ended.

    Returns:
        Whether the send was ended; False if this session came too late for that.
    """
    lab = fault.lab
    client = await lab.client(patience=ONCE)
    connection = await lab.connected()
    # The send looks for deadlocks after a second, so it is the one that is ended. If it looked
    # before this session waited, this one is ended, before the send's wait is refused as too long.
    await connection.execute("SET deadlock_timeout = '4s'")
    (text,) = fault.texts("repeat after me: @", 1)
    async with asyncio.TaskGroup() as tasks:
        is_closed = False
        with contextlib.suppress(asyncpg.QueryCanceledError, asyncpg.DeadlockDetectedError):
            async with connection.transaction():
                await connection.execute("SELECT set_config('faults.chat_id', $1, TRUE)", chat_id)
                await connection.execute(LOCK_CHAT, chat_id)
                sending = tasks.create_task(fault.send(client, chat_id, text))
                await connection.execute(CLOSE_CYCLE)
                is_closed = True
        fault.row.counts["deadlocks"] += is_closed
        if not await sending:
            fault.row.problems.append(f"{chat_id}: a deadlock was told to a user")
    await connection.close()
    return is_closed
