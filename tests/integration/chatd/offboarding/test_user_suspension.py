"""Users who are locked out or deleted: what becomes of their turns and their chats."""

import asyncio
from collections.abc import Sequence

import pytest

from chatd.chats.domain.chat import Status
from chatd.offboarding.engine.suspended_users import CHECK_S, SETTLE_S
from chatd.offboarding.store.suspended_users import BATCH_MAX
from chatd.primitives.domain.ids import OwnerId
from chatd.users.domain.status import UserStatus, UserSuspended
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable, Pool
from support.chatd.chats.chat_people import ANN_ID, BOB_ID
from support.chatd.chats.served_chats import ServedChats
from support.chatd.users.fixed_users import FixedUserStatuses
from support.chatd.users.suspension import suspension_of


async def suspended(pool: Pool) -> list[tuple[str, bool]]:
    rows = await pool.fetch("SELECT user_id, is_deleted FROM chat.suspended_users ORDER BY 1")
    return [(str(row["user_id"]), row["is_deleted"]) for row in rows]


async def test_whoever_is_locked_out_has_no_turn_that_goes_on(served: ServedChats) -> None:
    anns, bobs = await served.ann.create(), await served.bob.create()
    statuses = FixedUserStatuses({ANN_ID: UserStatus.DEACTIVATED})
    suspension = suspension_of(served, statuses, FakeClock())
    await suspension.on_notice(ANN_ID)
    with pytest.raises(UserSuspended):
        suspension.check(ANN_ID)
    suspension.check(BOB_ID)
    assert (await served.state(anns.id)).status is Status.INTERRUPTING
    assert (await served.state(bobs.id)).status is Status.RUNNING

    statuses.statuses.clear()
    await suspension.on_notice(ANN_ID)
    suspension.check(ANN_ID)
    assert await suspended(served.pool) == []
    assert await served.ann.texts(anns.id) == ["hello"]


#: More agents than one batch, at work below a root.
INSERT_AGENTS = """
    WITH child AS (
        INSERT INTO chat.chats (id, owner_id, owner_role, title, has_own_title, parent_chat_id,
            root_chat_id, model_id, reasoning_effort, mode, mcp_server_ids, labels, pin_order,
            summary, last_turn_summary, client_tools, last_read_message_id, created_at)
        SELECT ('00000000-0000-0000-0000-' || lpad(place::text, 12, '0'))::uuid, owner_id,
            owner_role, 'child', true, id, id, '', '', '', '{}', '{}', 0, '', '', '[]', 0,
            clock_timestamp()
        FROM chat.chats, generate_series(1, $2::int) AS place WHERE id = $1 RETURNING id)
    INSERT INTO chat.chat_exec (chat_id, status, archived, snapshot_version, history_version,
        queue_version, retry_version, generation_attempt, next_message_id, turn_id, queue_length,
        owner_epoch, takeovers, pending, compactions, is_compaction_requested, changed_at,
        changed_xid)
    SELECT id, 'running', false, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, '[]', 0, false, clock_timestamp(),
        pg_current_xact_id() FROM child
"""


async def test_a_root_and_more_agents_than_one_batch_are_stopped_at_once(
    served: ServedChats,
) -> None:
    root = await served.ann.create()
    await served.pool.execute(INSERT_AGENTS, root.id, BATCH_MAX + 5)
    statuses = FixedUserStatuses({ANN_ID: UserStatus.DEACTIVATED})
    await suspension_of(served, statuses, FakeClock()).on_notice(ANN_ID)
    found = await served.pool.fetch(
        "SELECT status, count(*) AS chats FROM chat.chat_exec GROUP BY status"
    )
    assert [(row["status"], row["chats"]) for row in found] == [("interrupting", BATCH_MAX + 6)]


async def test_a_deleted_user_leaves_nothing_behind_and_others_keep_theirs(
    served: ServedChats,
) -> None:
    anns, bobs = await served.ann.create(), await served.bob.create()
    await served.add_child(anns.id)
    shared = api.SetSharesRequest(
        request_id="s", chat_id=bobs.id, shares=[api.Share(user_id=ANN_ID)]
    )
    await served.bob.ask(shared)
    suspension = suspension_of(served, FixedUserStatuses({ANN_ID: UserStatus.DELETED}), FakeClock())
    await suspension.on_notice(ANN_ID)
    left = await served.pool.fetch("SELECT id FROM chat.chats")
    assert [str(row["id"]) for row in left] == [bobs.id]
    assert await served.pool.fetchval("SELECT count(*) FROM chat.chat_shares") == 0
    assert await suspended(served.pool) == [(ANN_ID, True)]


async def test_somebody_the_gateway_does_not_know_loses_nothing(served: ServedChats) -> None:
    chat = await served.ann.create()
    suspension = suspension_of(served, FixedUserStatuses({ANN_ID: UserStatus.UNKNOWN}), FakeClock())
    await suspension.on_notice(ANN_ID)
    suspension.check(ANN_ID)
    assert (await served.state(chat.id)).status is Status.RUNNING


async def test_a_deletion_is_not_taken_back(served: ServedChats) -> None:
    statuses = FixedUserStatuses({ANN_ID: UserStatus.DELETED})
    suspension = suspension_of(served, statuses, FakeClock())
    await suspension.on_notice(ANN_ID)
    for later in (UserStatus.ACTIVE, UserStatus.DEACTIVATED):
        statuses.statuses[ANN_ID] = later
        await suspension.on_notice(ANN_ID)
        assert await suspended(served.pool) == [(ANN_ID, True)]


async def test_a_change_that_nobody_told_is_found_at_the_start_and_every_hour(
    served: ServedChats,
) -> None:
    chat, clock = await served.ann.create(), FakeClock()
    statuses = FixedUserStatuses({})
    suspension = suspension_of(served, statuses, clock)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(suspension.run())
        await clock.until_sleeping()
        assert (await served.state(chat.id)).status is Status.RUNNING
        statuses.statuses[ANN_ID] = UserStatus.DEACTIVATED
        for _ in range(int(CHECK_S / SETTLE_S)):
            clock.advance(SETTLE_S)
            await clock.until_sleeping()
        assert (await served.state(chat.id)).status is Status.INTERRUPTING
        running.cancel()


async def test_without_a_gateway_users_are_checked_again_soon_and_it_is_a_warning_if_it_lasts(
    served: ServedChats, caplog: pytest.LogCaptureFixture
) -> None:
    chat, clock = await served.ann.create(), FakeClock()
    statuses = FixedUserStatuses({ANN_ID: UserStatus.DEACTIVATED})
    statuses.is_available = False
    suspension = suspension_of(served, statuses, clock)
    warnings = []
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(suspension.run())
        await clock.until_sleeping()
        warnings.append(len(caplog.records))
        clock.advance(SETTLE_S)
        await clock.until_sleeping()
        warnings.append(len(caplog.records))
        statuses.is_available = True
        clock.advance(SETTLE_S)
        await clock.until_sleeping()
        running.cancel()
    assert warnings == [0, 1]
    assert "no gateway has answered with the status of users for 60 s" in caplog.text
    assert (await served.state(chat.id)).status is Status.INTERRUPTING


class UnreliableStatuses(FixedUserStatuses):
    """Statuses that may be held back after they were read, or fail."""

    def __init__(self) -> None:
        super().__init__({})
        self.asked = asyncio.Event()
        self.released = asyncio.Event()
        self.released.set()
        self.is_failing = False

    async def of(self, user_ids: Sequence[OwnerId]) -> dict[OwnerId, UserStatus]:
        if self.is_failing:
            raise DatabaseUnavailable("away")
        found = await super().of(user_ids)
        if found:
            self.asked.set()
            await self.released.wait()
        return found


@pytest.mark.parametrize("is_failing", [False, True])
async def test_a_notice_that_fails_while_all_users_are_checked_is_made_up_for_a_minute_later(
    served: ServedChats, is_failing: bool
) -> None:
    chat, clock = await served.ann.create(), FakeClock()
    statuses = UnreliableStatuses()
    statuses.released.clear()
    suspension = suspension_of(served, statuses, clock)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(suspension.run())
        await statuses.asked.wait()
        statuses.statuses[ANN_ID] = UserStatus.DEACTIVATED
        statuses.is_failing, statuses.is_available = is_failing, is_failing
        await suspension.on_notice(ANN_ID)
        statuses.is_failing, statuses.is_available = False, True
        statuses.released.set()
        await clock.until_sleeping()
        assert (await served.state(chat.id)).status is Status.RUNNING
        clock.advance(SETTLE_S)
        await clock.until_sleeping()
        assert (await served.state(chat.id)).status is Status.INTERRUPTING
        running.cancel()


async def test_a_check_of_all_users_that_fails_is_repeated_a_minute_later(
    served: ServedChats,
) -> None:
    chat, clock = await served.ann.create(), FakeClock()
    statuses = UnreliableStatuses()
    statuses.is_failing = True
    suspension = suspension_of(served, statuses, clock)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(suspension.run())
        await clock.until_sleeping()
        statuses.statuses[ANN_ID] = UserStatus.DEACTIVATED
        statuses.is_failing = False
        clock.advance(SETTLE_S)
        await clock.until_sleeping()
        assert (await served.state(chat.id)).status is Status.INTERRUPTING
        running.cancel()
