"""Users who are locked out or deleted: what becomes of their turns and their chats."""

import asyncio

import pytest

from chatd.chats.domain.chat import Status
from chatd.offboarding.engine.suspended_users import CHECK_S, SETTLE_S, Barring, BarringPorts
from chatd.offboarding.store.suspended_users import PostgresBarring
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.users.domain.errors import UserBarred
from chatd.users.domain.status import KnownStandings, Standing
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.clock import FakeClock
from parley.postgres import Pool
from support.chatd.chats.chat_people import ANN_ID, BOB_ID
from support.chatd.chats.served_chats import ServedChats


def barring_of(served: ServedChats, standings: KnownStandings, clock: FakeClock) -> Barring:
    async def delete(chat_id: ChatId, owner_id: OwnerId) -> None:
        await served.stores.families.delete(chat_id, owner_id=owner_id)

    return Barring(
        BarringPorts(
            PostgresBarring(served.pool), standings, served.stores.chats.apply, delete, clock
        )
    )


async def barred(pool: Pool) -> list[tuple[str, bool]]:
    rows = await pool.fetch("SELECT user_id, is_deleted FROM chat.barred_users ORDER BY 1")
    return [(str(row["user_id"]), row["is_deleted"]) for row in rows]


async def test_whoever_is_locked_out_has_no_turn_that_goes_on(served: ServedChats) -> None:
    anns, bobs = await served.ann.create(), await served.bob.create()
    standings = KnownStandings({ANN_ID: Standing.DEACTIVATED})
    barring = barring_of(served, standings, FakeClock())
    await barring.heard(ANN_ID)
    with pytest.raises(UserBarred):
        barring.check(ANN_ID)
    barring.check(BOB_ID)
    assert (await served.state(anns.id)).status is Status.INTERRUPTING
    assert (await served.state(bobs.id)).status is Status.RUNNING

    standings.standings.clear()
    await barring.heard(ANN_ID)
    barring.check(ANN_ID)
    assert await barred(served.pool) == []
    assert await served.ann.texts(anns.id) == ["hello"]


async def test_a_deleted_user_leaves_nothing_behind_and_others_keep_theirs(
    served: ServedChats,
) -> None:
    anns, bobs = await served.ann.create(), await served.bob.create()
    await served.add_child(anns.id)
    shared = api.SetSharesRequest(
        request_id="s", chat_id=bobs.id, shares=[api.Share(user_id=ANN_ID)]
    )
    await served.bob.ask(shared)
    barring = barring_of(served, KnownStandings({ANN_ID: Standing.DELETED}), FakeClock())
    await barring.heard(ANN_ID)
    left = await served.pool.fetch("SELECT id FROM chat.chats")
    assert [str(row["id"]) for row in left] == [bobs.id]
    assert await served.pool.fetchval("SELECT count(*) FROM chat.chat_shares") == 0
    assert await barred(served.pool) == [(ANN_ID, True)]


async def test_somebody_the_gateway_does_not_know_loses_nothing(served: ServedChats) -> None:
    chat = await served.ann.create()
    barring = barring_of(served, KnownStandings({ANN_ID: Standing.UNKNOWN}), FakeClock())
    await barring.heard(ANN_ID)
    barring.check(ANN_ID)
    assert (await served.state(chat.id)).status is Status.RUNNING


async def test_a_deletion_is_not_taken_back(served: ServedChats) -> None:
    standings = KnownStandings({ANN_ID: Standing.DELETED})
    barring = barring_of(served, standings, FakeClock())
    await barring.heard(ANN_ID)
    for later in (Standing.ACTIVE, Standing.DEACTIVATED):
        standings.standings[ANN_ID] = later
        await barring.heard(ANN_ID)
        assert await barred(served.pool) == [(ANN_ID, True)]


async def test_a_change_that_nobody_told_is_found_at_the_start_and_every_hour(
    served: ServedChats,
) -> None:
    chat, clock = await served.ann.create(), FakeClock()
    standings = KnownStandings({})
    barring = barring_of(served, standings, clock)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(barring.run())
        await clock.until_sleeping()
        assert (await served.state(chat.id)).status is Status.RUNNING
        standings.standings[ANN_ID] = Standing.DEACTIVATED
        for _ in range(int(CHECK_S / SETTLE_S)):
            clock.advance(SETTLE_S)
            await clock.until_sleeping()
        assert (await served.state(chat.id)).status is Status.INTERRUPTING
        running.cancel()
