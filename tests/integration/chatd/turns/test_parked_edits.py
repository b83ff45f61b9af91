"""An edit whose files were to be restored when its chat is parked can be undone."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from chatd.chats.domain.chat import (
    ChatState,
    DoneRevert,
    PendingCall,
    Revert,
    RevertKind,
    Status,
)
from chatd.chats.store.chats import PostgresChats
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, RevertId, WorkerId
from chatd.turns.store.workers import PostgresWorkers
from chatd.workers.domain import PARKING_TAKEOVERS
from parley.clock import FakeClock
from parley.postgres import Pool, Session
from support.chatd.chats.chat_rows import insert_chat
from support.chatd.chats.in_memory_chats import InMemoryChats
from support.chatd.turns.in_memory_workers import InMemoryWorkers
from support.database.conflicts import RETRIES

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
ME = WorkerId("00000000-0000-0000-0000-0000000000aa")
OTHER = WorkerId("00000000-0000-0000-0000-0000000000bb")
LEASE_S = 15.0
EDIT = Revert(
    RevertId("00000000-0000-0000-0000-0000000000f2"),
    RevertKind.EDIT,
    MessageId(1),
    restores_files=True,
    open_calls=(PendingCall("c", "ask", kind=PendingKind.QUESTION, reason="one\0two"),),
    replacement_id=MessageId(2),
    deleted_version=4,
)
DOOMED = ChatState(
    CHAT,
    Status.RUNNING,
    snapshot_version=5,
    history_version=4,
    generation_attempt=2,
    next_message_id=MessageId(3),
    owner_epoch=7,
    worker_id=OTHER,
    takeovers=PARKING_TAKEOVERS - 1,
)


@dataclass
class Memory:
    """The store in memory."""

    chats: InMemoryChats
    clock: FakeClock
    workers: InMemoryWorkers

    async def insert(self, state: ChatState) -> None:
        self.workers.add(state, ANN, self.clock.now())

    async def done_reverts(self) -> tuple[DoneRevert, ...]:
        return tuple(self.chats.chats[CHAT].reverts.values())


@dataclass
class Postgres:
    """The store in PostgreSQL."""

    pool: Pool
    workers: PostgresWorkers

    async def insert(self, state: ChatState) -> None:
        await insert_chat(self.pool, state, ANN, age_s=0.0)

    async def done_reverts(self) -> tuple[DoneRevert, ...]:
        chats = PostgresChats(self.pool, lambda state: None, FakeClock())
        return await chats.done_reverts(CHAT, 2)


World = Memory | Postgres


@pytest.fixture(params=["memory", "postgres"])
async def world(
    request: pytest.FixtureRequest, pool: Pool, chat_database: str
) -> AsyncIterator[World]:
    if request.param == "memory":
        chats, clock = InMemoryChats(), FakeClock()
        yield Memory(chats, clock, InMemoryWorkers(chats, clock))
        return
    workers = PostgresWorkers(pool, Session(chat_database, "test lease"), RETRIES)
    try:
        yield Postgres(pool, workers)
    finally:
        workers.close()


async def parked(world: World, state: ChatState, *, is_ended: bool) -> ChatState:
    """Park a chat whose owner ended, or whose owner's lease did."""
    workers = world.workers
    await workers.register(ME, "unix:/me", LEASE_S)
    if is_ended:
        await workers.register(OTHER, "unix:/other", LEASE_S)
    await world.insert(state)
    (found,) = await (workers.end(OTHER) if is_ended else workers.park(ME, 10))
    return found


@pytest.mark.parametrize("is_ended", [False, True])
async def test_an_edit_of_a_chat_that_is_parked_is_recorded_without_files(
    world: World, is_ended: bool
) -> None:
    state = await parked(world, replace(DOOMED, revert=EDIT), is_ended=is_ended)
    assert (state.status, state.revert) == (Status.ERROR, None)
    (done,) = await world.done_reverts()
    assert done.revert == replace(EDIT, restores_files=False)
    assert (done.version, done.report) == (state.snapshot_version, b"")


async def test_a_revert_of_a_chat_that_is_parked_is_not_recorded(world: World) -> None:
    revert = Revert(EDIT.revert_id, RevertKind.HISTORY, MessageId(1), True)
    state = await parked(world, replace(DOOMED, revert=revert), is_ended=False)
    assert state.revert is None
    assert await world.done_reverts() == ()
