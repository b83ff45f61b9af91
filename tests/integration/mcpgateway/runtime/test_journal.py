"""The journal of calls in PostgreSQL."""

import asyncio
from dataclasses import replace

import pytest

from mcpgateway.client.call import CallEnd, CallRecord, CallRequest, Outcome
from mcpgateway.client.content import BlobPart, TextPart
from mcpgateway.runtime.journal import PRUNED_AT_ONCE_MAX, Journal, LeasedCall
from mcpgateway.servers.domain import Limits, Reason
from mcpgateway.servers.errors import ExecutionIdReused, JournalChanged, StaleOwner, TooManyCalls
from parley.postgres import Database
from support.mcpgateway.values import SERVER_ID, an_order

OTHER_GATEWAY = "01900000-0000-7000-8000-0000000000bb"
END = CallEnd(Outcome.SUCCEEDED, (TextPart("done"), BlobPart("image", "image/png", b"\0x")))


async def test_a_call_is_journaled_once_and_found_again(journal: Journal) -> None:
    call_request = an_order()

    first, is_new = await journal.begin(call_request)
    second, is_new_again = await journal.begin(call_request)

    assert (is_new, is_new_again) == (True, False)
    assert first == second == await journal.find(call_request.key)
    assert first.end is None


async def test_a_call_never_seen_is_not_found(journal: Journal) -> None:
    assert await journal.find(an_order().key) is None


async def test_the_first_end_is_the_end(journal: Journal) -> None:
    await journal.begin(an_order())

    finished = await journal.finish("call-1", END)
    again = await journal.finish("call-1", CallEnd(Outcome.CANCELLED))

    assert finished == again
    assert finished.end == END


@pytest.mark.parametrize(
    "other",
    [
        an_order(arguments_json=b'{"a":1}'),
        an_order(tool="other"),
        an_order(caller="token:1"),
        an_order(chat_id="chat-2"),
    ],
)
async def test_an_execution_id_does_not_name_two_calls(journal: Journal, other: object) -> None:
    await journal.begin(an_order())

    with pytest.raises(ExecutionIdReused):
        await journal.begin(other)  # type: ignore[arg-type]


async def test_an_older_owner_can_neither_start_nor_ask_nor_cancel(journal: Journal) -> None:
    older, newer = an_order("call-1", owner_epoch=4), an_order("call-2", owner_epoch=5)
    await journal.find(newer.key)

    for asking in (journal.begin(older), journal.find(older.key), journal.cancel(older.key)):
        with pytest.raises(StaleOwner) as caught:
            await asking
        assert caught.value.owner_epoch == 5
    assert await journal.find(replace(newer.key, execution_id="call-1")) is None


async def test_owners_of_other_chats_are_not_affected(journal: Journal) -> None:
    await journal.find(an_order(owner_epoch=9).key)

    assert (await journal.begin(an_order("call-2", chat_id="chat-2")))[1]


async def test_a_call_cancelled_before_it_started_can_no_longer_start(journal: Journal) -> None:
    call_request = an_order()

    cancelled = await journal.cancel(call_request.key)
    record, is_new = await journal.begin(call_request)

    assert (record, is_new) == (cancelled, False)
    assert record.end == CallEnd(
        Outcome.CANCELLED,
        reason=Reason.CANCELLED,
        message="cancelled before it started",
        may_have_executed=False,
    )


async def test_the_process_that_makes_a_call_learns_that_it_was_cancelled(journal: Journal) -> None:
    await journal.begin(an_order())
    await journal.begin(an_order("call-2", server_id="another"))

    await journal.cancel(an_order().key)

    assert set(await journal.renew()) == {LeasedCall("call-1", True), LeasedCall("call-2", False)}


async def test_all_calls_of_a_server_can_be_cancelled(journal: Journal) -> None:
    await journal.begin(an_order())

    await journal.cancel_calls_of(SERVER_ID)

    assert await journal.renew() == (LeasedCall("call-1", True),)


async def test_acknowledging_drops_the_parts_and_keeps_the_outcome(journal: Journal) -> None:
    for execution_id in ("done", "running", "foreign"):
        caller = "token:1" if execution_id == "foreign" else "chatd"
        await journal.begin(an_order(execution_id, caller=caller))
    await journal.finish("done", END)
    await journal.finish("foreign", END)

    acknowledged = await journal.acknowledge("chatd", ["done", "running", "foreign", "unknown"])

    record = await journal.read("done")
    assert acknowledged == {"done"}
    assert record.is_acknowledged
    assert record.end == replace(END, parts=())


async def test_calls_of_a_process_that_ended_become_unknown(
    journal: Journal, database: Database
) -> None:
    dead = await Journal.open(database, OTHER_GATEWAY)
    await dead.begin(an_order("lost"))
    await journal.begin(an_order("alive"))
    await database.pool.execute(
        "UPDATE mcp.gateways SET lease_expires_at = now() - interval '1 s' WHERE id = $1",
        OTHER_GATEWAY,
    )

    await journal.fail_abandoned_calls()

    lost, alive = await journal.read("lost"), await journal.read("alive")
    assert lost.end is not None
    assert (lost.end.outcome, lost.end.reason, lost.end.may_have_executed) == (
        Outcome.UNKNOWN,
        Reason.GATEWAY_LOST,
        True,
    )
    assert alive.end is None


async def test_old_results_are_dropped_and_older_calls_leave_a_tombstone(
    journal: Journal, database: Database
) -> None:
    for execution_id, caller in (
        ("token", "token:1"),
        ("chat", "chatd"),
        ("old", "chatd"),
        ("lost", "chatd"),
    ):
        await journal.begin(an_order(execution_id, caller=caller, chat_id=""))
        await journal.finish(execution_id, END)
    await journal.acknowledge("chatd", ["old"])
    await database.pool.execute(
        "UPDATE mcp.calls SET finished_at = now() - interval '25 hours',"
        " acknowledged_at = acknowledged_at - interval '61 minutes'"
    )
    await database.pool.execute(
        "UPDATE mcp.calls SET finished_at = now() - interval '8 days' WHERE execution_id = 'lost'"
    )

    await journal.delete_expired()
    stored = await database.pool.fetchval("SELECT count(*) FROM mcp.tombstones")
    await database.pool.execute("UPDATE mcp.calls SET pruned_at = pruned_at - interval '6 min'")
    await journal.delete_expired()

    assert stored == 1
    assert (await journal.read("token")).is_acknowledged
    assert (await journal.read("lost")).is_acknowledged
    assert (await journal.read("chat")).end == END
    old = an_order("old", chat_id="").key
    assert await journal.find(old) == CallRecord(
        old, sha256=None, started_at=None, finished_at=None, end=None, is_acknowledged=True
    )
    assert await database.pool.fetchval("SELECT count(*) FROM mcp.calls") == 3


async def test_what_is_old_is_deleted_in_limited_steps(
    journal: Journal, database: Database
) -> None:
    await database.pool.execute(
        "INSERT INTO mcp.calls (execution_id, caller, chat_id, owner_epoch, server_id, user_id,"
        " tool, finished_at, outcome)"
        " SELECT id::text, 'chatd', 'chat-1', 1, '', '', '', now() - interval '8 days', 'succeeded'"
        " FROM generate_series(0, $1::int) AS id",
        PRUNED_AT_ONCE_MAX,
    )

    pruned: list[int] = []
    journal = await Journal.open(database, "01900000-0000-7000-8000-0000000000cc", pruned.append)
    is_more = [await journal.delete_expired(), await journal.delete_expired()]
    await database.pool.execute("UPDATE mcp.calls SET acknowledged_at = now() - interval '2 h'")
    is_more += [await journal.delete_expired(), await journal.delete_expired()]
    await database.pool.execute("UPDATE mcp.calls SET pruned_at = now() - interval '1 h'")
    is_more += [await journal.delete_expired(), await journal.delete_expired()]

    assert is_more == [True, False] * 3
    assert pruned == [0, 0, PRUNED_AT_ONCE_MAX, 1, 0, 0]
    counts = "SELECT (SELECT count(*) FROM mcp.calls), (SELECT count(*) FROM mcp.tombstones)"
    found = await database.pool.fetchrow(counts)
    assert found is not None
    assert tuple(found) == (0, PRUNED_AT_ONCE_MAX + 1)


async def test_an_id_is_known_before_and_after_its_row_is_deleted(
    journal: Journal, database: Database
) -> None:
    order = an_order()
    await journal.begin(order)
    await journal.finish("call-1", END)
    await journal.acknowledge("chatd", ["call-1"])
    await database.pool.execute("UPDATE mcp.calls SET acknowledged_at = now() - interval '2 h'")

    for rows in (1, 0):
        await journal.delete_expired()
        assert await database.pool.fetchval("SELECT count(*) FROM mcp.calls") == rows
        assert await journal.acknowledge("chatd", ["call-1", "never"]) == {"call-1"}
        assert not (await journal.begin(order))[1]
        assert (await journal.cancel(order.key)).is_acknowledged
        await database.pool.execute("UPDATE mcp.calls SET pruned_at = pruned_at - interval '6 min'")


async def test_another_generation_is_refused(journal: Journal) -> None:
    journal.check_generation(journal.generation)

    with pytest.raises(JournalChanged) as caught:
        journal.check_generation("another")
    assert caught.value.generation == journal.generation


async def test_limits_hold_over_all_processes(journal: Journal, database: Database) -> None:
    elsewhere = await Journal.open(database, "01900000-0000-7000-8000-0000000000cc")
    limits = Limits(calls_max=3, calls_per_user_max=2)
    orders = [an_order(f"call-{number}", user_id="ann") for number in range(6)]

    async def begun(order: CallRequest, where: Journal) -> bool:
        try:
            return (await where.begin(order, limits))[1]
        except TooManyCalls:
            return False

    async with asyncio.TaskGroup() as tasks:
        tried = [
            tasks.create_task(begun(order, (journal, elsewhere)[number % 2]))
            for number, order in enumerate(orders)
        ]
    assert sum(task.result() for task in tried) == 2
    assert await begun(an_order("of bob", user_id="bob"), journal)
    assert not await begun(an_order("of eve", user_id="eve"), elsewhere)


async def test_calls_that_wait_for_their_turn_leave_connections_to_others(
    journal: Journal, database: Database
) -> None:
    await journal.begin(an_order("running"))
    limits = Limits(calls_per_user_max=64)
    lock = "SELECT pg_advisory_lock(hashtextextended('mcp.calls ' || $1, 0))"
    async with database.pool.acquire() as other, asyncio.TaskGroup() as tasks:
        # Another process begins a call of the same server, and takes its time.
        await other.execute(lock, SERVER_ID)
        beginning = [
            # More than there are connections.
            tasks.create_task(journal.begin(an_order(f"call-{number}"), limits))
            for number in range(20)
        ]
        finished = await journal.finish("running", END)
        assert finished.end == END
        assert not any(task.done() for task in beginning)
        await other.execute(lock.replace("_lock", "_unlock"), SERVER_ID)
