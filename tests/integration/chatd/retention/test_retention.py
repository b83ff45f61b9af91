"""Old chats are announced, archived and deleted as whole trees; what is in use stays."""

import asyncio
from dataclasses import dataclass, field

import pytest

from chatd.chats.domain.chat import Status
from chatd.chats.store.metadata import ChatChanges
from chatd.models.domain.preferences import InstallationSettings
from chatd.primitives.domain.errors import VersionConflict
from chatd.primitives.domain.ids import ChatId
from chatd.retention.engine.rounds import RetentionPorts, RetentionRounds
from chatd.retention.rpc.servicer import RetentionServicer
from chatd.retention.store.retention import TRY_TO_BEGIN, PostgresRetention
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import retention_service_pb2
from parley.clock import FakeClock
from parley.postgres import Pool
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats

SETTINGS = InstallationSettings(auto_archive_days=30, retention_days=90)

# Everything of a tree happened so many days earlier, also that its owner was told.
MAKE_OLDER = """
    WITH tree AS (SELECT id FROM chat.chats WHERE root_chat_id = $1),
    notices AS (
        UPDATE chat.chats SET archives_at = archives_at - make_interval(days => $2),
            purges_at = purges_at - make_interval(days => $2),
            retention_noticed_at = retention_noticed_at - make_interval(days => $2)
        WHERE id = $1)
    UPDATE chat.chat_exec SET changed_at = changed_at - make_interval(days => $2)
    WHERE chat_id IN (SELECT id FROM tree)
"""


@dataclass
class Aged:
    """Rounds over the chats of a test, and what they announce."""

    served: ServedChats
    settings: InstallationSettings = SETTINGS
    told: list[ChatId] = field(default_factory=list)

    @property
    def store(self) -> PostgresRetention:
        return PostgresRetention(self.served.pool)

    async def round(self) -> None:
        """Make one round over a page of trees."""

        async def settings() -> InstallationSettings:
            return self.settings

        rounds = RetentionRounds(
            RetentionPorts(
                self.store,
                self.served.stores.trees,
                settings,
                self.told.append,
                FakeClock(),
                lambda: 0.5,
            )
        )
        async with asyncio.timeout(20):
            await rounds.make_round()

    async def chat(self, *, days: int, finished: bool = True) -> ChatId:
        chat = await self.served.ann.create()
        if finished:
            await self.served.finish(chat.id)
        await self.older(ChatId(chat.id), days)
        return ChatId(chat.id)

    async def older(self, chat_id: ChatId, days: int) -> None:
        await self.served.pool.execute(MAKE_OLDER, chat_id, days)

    async def shown(self, chat_id: ChatId) -> tuple[bool, bool, bool]:
        """Return whether a chat is archived, and whether it says when it ends."""
        chat = (await self.served.ann.ask(api.GetChatRequest(chat_id=chat_id))).chat
        return chat.archived, chat.HasField("archives_at"), chat.HasField("purges_at")

    async def counts(self) -> list[tuple[int, int, int, int]]:
        return [
            (day.noticed, day.withdrawn, day.archived, day.purged)
            for day in await self.store.counts(31)
        ]


@pytest.fixture
def aged(served: ServedChats) -> Aged:
    return Aged(served)


async def exists(pool: Pool, chat_id: ChatId) -> bool:
    return await pool.fetchval("SELECT 1 FROM chat.chats WHERE id = $1", chat_id) is not None


async def test_an_unused_tree_is_announced_archived_announced_and_deleted(aged: Aged) -> None:
    chat_id = await aged.chat(days=0)
    child_id = ChatId(await aged.served.add_child(chat_id))
    await aged.older(chat_id, 25)
    await aged.round()
    assert (aged.told, await aged.shown(chat_id)) == ([chat_id], (False, True, False))
    await aged.round()
    assert (aged.told, await aged.shown(chat_id)) == ([chat_id], (False, True, False))

    await aged.older(chat_id, 8)
    await aged.round()
    assert await aged.shown(chat_id) == (True, False, False)
    assert (await aged.served.state(child_id)).archived

    await aged.older(chat_id, 85)
    await aged.round()
    assert await aged.shown(chat_id) == (True, False, True)
    await aged.older(chat_id, 8)
    await aged.round()
    assert not await exists(aged.served.pool, chat_id)
    assert not await exists(aged.served.pool, child_id)
    assert (aged.told, await aged.counts()) == ([chat_id, chat_id], [(2, 0, 1, 1)])


async def test_pinned_running_and_waiting_chats_are_never_announced(aged: Aged) -> None:
    pinned = await aged.chat(days=400)
    await aged.served.stores.metadata.change(
        pinned, owner_id=ANN_ID, changes=ChatChanges(pin_order=1), etag=""
    )
    running = await aged.chat(days=400, finished=False)
    parent = await aged.chat(days=400)
    await aged.served.add_child(parent, "running")
    await aged.older(parent, 400)
    await aged.round()
    assert aged.told == []
    for chat_id in (pinned, running, parent):
        assert await aged.shown(chat_id) == (False, False, False)


async def test_a_chat_that_is_used_after_the_notice_is_left_alone(aged: Aged) -> None:
    used, pinned = await aged.chat(days=400), await aged.chat(days=400)
    await aged.round()
    await aged.older(used, 8)
    await aged.older(pinned, 8)
    await aged.served.ann.send(used, "still here")
    await aged.served.finish(used)
    await aged.served.stores.metadata.change(
        pinned, owner_id=ANN_ID, changes=ChatChanges(pin_order=1), etag=""
    )
    # Before any round their readers see that the notice does not hold any more.
    for chat_id in (used, pinned):
        assert await aged.shown(chat_id) == (False, False, False)
        with pytest.raises(VersionConflict):
            await aged.served.stores.trees.archive_expired(chat_id, owner_id=ANN_ID)
    await aged.round()
    assert await aged.counts() == [(2, 2, 0, 0)]
    assert (await aged.served.state(used)).status is Status.WAITING


async def test_an_archived_chat_that_is_taken_back_is_not_deleted(aged: Aged) -> None:
    chat_id = await aged.chat(days=0)
    await aged.served.stores.trees.set_archived(chat_id, owner_id=ANN_ID, archived=True)
    await aged.older(chat_id, 85)
    await aged.round()
    await aged.older(chat_id, 8)
    await aged.served.stores.trees.set_archived(chat_id, owner_id=ANN_ID, archived=False)
    with pytest.raises(VersionConflict):
        await aged.served.stores.trees.delete_expired(chat_id, owner_id=ANN_ID)
    await aged.round()
    assert await aged.shown(chat_id) == (False, False, False)


async def test_one_process_at_a_time_makes_a_round(aged: Aged) -> None:
    await aged.chat(days=400)
    async with aged.served.pool.acquire() as other, other.transaction():
        assert await other.fetchval(TRY_TO_BEGIN)
        await aged.round()
        assert aged.told == []
    await aged.round()
    assert len(aged.told) == 1


async def test_a_preview_shows_every_step_and_takes_none(aged: Aged) -> None:
    young, old = await aged.chat(days=5), await aged.chat(days=400)
    due = await aged.chat(days=400)
    await aged.served.pool.execute(
        "UPDATE chat.chats SET archives_at = now(), retention_noticed_at = now() WHERE id = $1", due
    )

    async def settings() -> InstallationSettings:
        return SETTINGS

    servicer = RetentionServicer(aged.store, settings)

    async def preview(**given: int) -> tuple[dict[str, str], dict[str, int]]:
        answer = await servicer.PreviewRetention(
            retention_service_pb2.PreviewRetentionRequest(**given),
            None,  # type: ignore[arg-type]
        )
        name = retention_service_pb2.RetentionStep.Name
        return (
            {item.chat_id: name(item.step)[15:] for item in answer.items},
            {name(each.step)[15:]: each.chats for each in answer.counts if each.chats},
        )

    assert await preview() == (
        {old: "NOTICE_ARCHIVE", due: "ARCHIVE"},
        {"NOTICE_ARCHIVE": 1, "ARCHIVE": 1},
    )
    assert await preview(auto_archive_days=1) == (
        {young: "NOTICE_ARCHIVE", old: "NOTICE_ARCHIVE", due: "ARCHIVE"},
        {"NOTICE_ARCHIVE": 2, "ARCHIVE": 1},
    )
    assert await preview(auto_archive_days=0) == ({due: "WITHDRAW"}, {"WITHDRAW": 1})
    assert (aged.told, await aged.counts()) == ([], [])
    assert await aged.shown(old) == (False, False, False)
