"""Clocks that are wrong and a process that does not get to look at its own: rows B1 to B3."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from parley.client import Parley, ToolOutcome, ToolResult
from parley.testing.faultpoints import Action
from support.faults.lab import FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

AHEAD = "10 minutes"
SHIM = """
    CREATE SCHEMA shim;
    CREATE TABLE shim.skew (ahead interval NOT NULL);
    INSERT INTO shim.skew VALUES ('0');
    CREATE FUNCTION shim.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
        AS 'SELECT pg_catalog.clock_timestamp() + (SELECT ahead FROM shim.skew)';
    CREATE FUNCTION shim.now() RETURNS timestamptz LANGUAGE sql VOLATILE
        AS 'SELECT pg_catalog.now() + (SELECT ahead FROM shim.skew)';
    GRANT USAGE ON SCHEMA shim TO parley_chatd;
    GRANT SELECT ON shim.skew TO parley_chatd;
    ALTER ROLE parley_chatd IN DATABASE parley SET search_path = shim, pg_catalog, chat;
"""
UNSHIM = """
    ALTER ROLE parley_chatd IN DATABASE parley SET search_path = chat;
    DROP SCHEMA IF EXISTS shim CASCADE;
"""
RECONNECT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'parley_chatd'"


@pytest.mark.row("B1")
@pytest.mark.parametrize("offset_s", [3600.0, -3600.0], ids=["hour_ahead", "hour_behind"])
async def test_b1_a_process_with_a_wrong_clock_loses_no_chat_and_refuses_nobody(
    lab: FaultLab, offset_s: float
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        await fault.create_all(here, fault.texts("count to 60, @"))
        await fault.create_all(here, fault.texts("run: echo @ >> runs; sleep 2; seq 1 9"))
        await lab.sleep(0.5)
        lab.points.set_clock(victim.pid, offset_s)
        # What begins now is signed and checked by the wrong clock, at the gRPC client's process
        # and at whichever the gateway prefers.
        tools = "run: echo @ >> runs; sleep 1; seq 1 9"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fault.create_all(here, fault.texts(tools)))
            for text in fault.texts(tools):
                tasks.create_task(fault.create_by_http(text))
        fault.trial(len(fault.chat_ids))
        states = await fault.at_rest()
        # A takeover is a second claim; a turn that goes on after a retry is none.
        taken = sum(state.owner_epoch > 1 for state in states.values())
        lab.row.counts["takeovers"] += taken
        if taken:
            lab.row.problems.append(f"{taken} chats were taken over: {states}")
        await require_done(fault)


async def require_done(fault: Fault) -> None:
    """Require that no request was refused and every tool has run, the model told of no refusal."""
    refused = {
        name: count
        for name, count in fault.row.counts.items()
        if name.startswith(("http_", "client_")) and not name.startswith("http_2")
    }
    if refused:
        fault.row.problems.append(f"requests were refused: {refused}")
    wanted = 3 * fault.size
    results = [
        part
        for chat_id in fault.chat_ids
        for message in await fault.messages(chat_id)
        for part in message.content
        if isinstance(part, ToolResult)
    ]
    fault.row.counts["tools"] += len(results)
    failed = [part for part in results if part.outcome is not ToolOutcome.DONE]
    if failed or len(results) != wanted:
        fault.row.problems.append(f"{len(results)} of {wanted} tools ran; failed: {failed!r:.600}")


@asynccontextmanager
async def shimmed(lab: FaultLab) -> AsyncIterator[None]:
    """Let chatd's sessions see a clock of the server that a test can move."""
    connection = await lab.connected()
    await connection.execute(SHIM)
    try:
        await connection.execute(RECONNECT)
        await lab.until_whole()
        yield
    finally:
        connection = await lab.connected()
        await connection.execute("UPDATE shim.skew SET ahead = '0'")
        await lab.until(lambda: are_leases(lab, "0"), "leases by the right clock", 30)
        await connection.execute(UNSHIM)
        await connection.execute(RECONNECT)


@pytest.mark.row("B2")
async def test_b2_a_server_whose_clock_jumps_ahead_makes_no_second_owner(lab: FaultLab) -> None:
    async with shimmed(lab):
        async for fault in faults(lab):
            client = await lab.client()
            chat_ids = await fault.load(client)
            await lab.sleep(0.5)
            ahead = AHEAD if fault.number % 2 == 0 else "0"
            await lab.query("UPDATE shim.skew SET ahead = $1::text::interval", ahead)
            fault.trial(len(chat_ids))
            await lab.until(lambda ahead=ahead: are_leases(lab, ahead), "leases by that clock", 30)  # type: ignore[misc]
            await measure_turn(fault, client)
            states = await fault.at_rest()
            lab.row.counts["takeovers"] += sum(state.owner_epoch > 1 for state in states.values())


async def are_leases(lab: FaultLab, ahead: str) -> bool:
    """Return whether every process has renewed its lease by the clock that is so much ahead."""
    rows = await lab.query(
        "SELECT extract(epoch FROM lease_until - clock_timestamp() - $1::text::interval) AS left_s"
        " FROM chat.workers ORDER BY started_at DESC LIMIT 3",
        ahead,
    )
    return all(0 < row["left_s"] <= lab.lease_s for row in rows)


async def measure_turn(fault: Fault, client: Parley) -> None:
    began_s = time.monotonic()
    chat_id = await fault.create(client, *fault.texts("repeat after me: @", 1))
    assert chat_id is not None
    await fault.until_all(lambda state: state.is_at_rest, "rest of another", 60, [chat_id])
    fault.row.figures["turn_after_jump_s"].append(time.monotonic() - began_s)


@pytest.mark.row("B3")
async def test_b3_a_blocked_event_loop_loses_its_chats_and_writes_nothing_afterwards(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        here = await lab.client(victim.address)
        chat_ids = await fault.create_all(here, fault.texts("count to 60, @"))
        before = await lab.states(chat_ids)
        blocked_s = lab.lease_s + 5.0
        lab.points.arm(
            "model.event", Action.BLOCK, pid=victim.pid, subjects=(chat_ids[0],), seconds=blocked_s
        )
        began_s = time.monotonic()
        await fault.until_held("model.event", chat_ids[:1])
        lab.points.disarm()
        fault.trial(len(chat_ids))
        await fault.measure_takeover(before, began_s)
        await lab.sleep(max(0.0, blocked_s + 2.0 - (time.monotonic() - began_s)))
        await fault.at_rest()
        log = lab.stack.home.log_file(victim.name).read_text()
        is_status_sent = "the event loop did not turn" in log and "most recent call first" in log
        lab.row.counts["stacks_logged"] += is_status_sent
        if not is_status_sent:
            lab.row.problems.append("nobody wrote down what blocked the event loop")
