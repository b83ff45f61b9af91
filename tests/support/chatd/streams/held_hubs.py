"""Hubs over reads that a test holds in its hands."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from chatd.chats.domain.chat import ChatState, Message, NewMessage, Status
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, MessageId, OwnerId, WorkerId
from chatd.primitives.domain.requests import Reader
from chatd.streams.engine.live import LiveChats
from chatd.streams.hub.hubs import Hubs
from chatd.streams.rpc.subscription import Subscription
from chatd.streams.store.chat_reads import ChatReader, ChatReadRequest, FollowedChat
from parley.clock import FakeClock
from parley.clock.fake import EPOCH
from parley.tasks import Starter

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
ANN = Reader(OwnerId("00000000-0000-0000-0000-00000000000a"))
FIRST = ChatState(CHAT, Status.RUNNING, 1, 1, 1, MessageId(2), worker_id=WORKER)


def said(number: int, revision: int, *, is_deleted: bool = False) -> Message:
    return Message(
        MessageId(number),
        revision,
        Role.ASSISTANT,
        (Text(f"message {number}"),),
        "",
        EPOCH,
        is_deleted=is_deleted,
    )


@dataclass(slots=True)
class HeldReads:
    """Answers from memory, when the test lets it."""

    state: ChatState = FIRST
    messages: list[Message] = field(default_factory=lambda: [said(1, 1)])
    readers: frozenset[Reader] = frozenset({ANN})
    reads: int = 0
    asked: list[ChatReadRequest] = field(default_factory=list)
    failing: Callable[[Sequence[ChatReadRequest]], Exception | None] = lambda asked: None
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, asked: Sequence[ChatReadRequest]) -> tuple[FollowedChat | None, ...]:
        self.reads += 1
        self.asked += asked
        if (error := self.failing(asked)) is not None:
            raise error
        # As the database: one look at everything, whenever the answer arrives.
        found = tuple(self._found(each) for each in asked)
        await self.may_answer.wait()
        return found

    def _found(self, asked: ChatReadRequest) -> FollowedChat | None:
        if asked.reader is not None and asked.reader not in self.readers:
            return None
        messages = self.messages if asked.limit else []
        changed = [each for each in messages if each.revision > asked.after]
        if not asked.after:
            changed = [each for each in changed if not each.is_deleted]
        deleted = max((each.revision for each in messages if each.is_deleted), default=0)
        return FollowedChat(
            ANN.id,
            replace(self.state, chat_id=asked.chat_id),
            0,
            (),
            (),
            tuple(changed[-asked.limit :]),
            is_complete=len(changed) <= asked.limit,
            deleted_version=deleted if asked.with_deletions else None,
        )

    async def read_page(
        self, chat_id: ChatId, *, behind_id: int, after: int, upto: int, limit: int
    ) -> tuple[Message, ...]:
        self.reads += 1
        wanted = [
            each
            for each in self.messages
            if each.id > behind_id and after < each.revision <= upto and not each.is_deleted
        ]
        return tuple(wanted[:limit])

    async def still_readable(self, asked: Sequence[ChatReader]) -> frozenset[ChatReader]:
        self.reads += 1
        return frozenset(each for each in asked if each.reader in self.readers)

    async def versions(self, chat_ids: Sequence[ChatId]) -> dict[ChatId, int]:
        return dict.fromkeys(chat_ids, self.state.snapshot_version)


class Stage:
    """The objects that a hub is made with."""

    def __init__(self, tasks: Starter) -> None:
        self.reads = HeldReads()
        self.live = LiveChats()
        self.clock = FakeClock()
        self.hubs = Hubs(self.reads, self.live, relays=NoRelays(), tasks=tasks, clock=self.clock)

    def follow(self, cursor: str = "") -> Subscription:
        return self.hubs.follow(CHAT, cursor, 0, lambda _: None)

    async def open(
        self, chat_id: ChatId = CHAT, reader: Reader = ANN, cursor: str = ""
    ) -> Subscription:
        """Let somebody follow a chat if they may."""
        subscription, _ = await self.hubs.open(
            chat_id, reader, cursor=cursor, after_id=0, wake=lambda _: None
        )
        return subscription

    def commit(self, number: int) -> None:
        """Let this process write one more message."""
        before = self.reads.state
        after = replace(
            before,
            snapshot_version=number,
            history_version=number,
            next_message_id=MessageId(number + 1),
        )
        self.reads.state = after
        self.reads.messages.append(said(number, number))
        new = NewMessage(Role.ASSISTANT, (Text(f"message {number}"),))
        self.hubs.appended(before, after, (new,), EPOCH)
        self.hubs.state_changed(after)


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        stage = Stage(tasks)
        yield stage
        stage.hubs.close()


async def settle() -> None:
    """Let everything that can go on do so."""
    for _ in range(20):
        await next_turn()


async def next_turn() -> None:
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    await turned


class NoRelays:
    """Relays of a deployment with a single process."""

    def target(self, state: ChatState) -> None:
        """Do nothing."""

    def drop(self, chat_id: ChatId) -> None:
        """Do nothing."""
