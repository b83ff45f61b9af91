"""StreamService: the committed state of a chat, then what happens to it."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc

from chatd.domain.chat import ChatId, Status, Visibility
from chatd.domain.views import Reader
from chatd.engine.live import FellBehind, GoingAway, LiveChats, LivePart, Moved
from chatd.rpc.callers import Groups, caller_as_reader
from chatd.rpc.convert import (
    STATUS,
    error_to_proto,
    live_part_to_proto,
    message_to_proto,
    retry_to_proto,
)
from chatd.rpc.fields import chat_id_of
from chatd.store.stores import Stores
from parley.api.chat.v1 import event_pb2
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.api.chat.v1.stream_service_pb2_grpc import StreamServiceServicer

CURSOR = re.compile(r"[0-9]{1,19}(\.[0-9]{1,19}){5}")
# The largest that the database can be asked about.
NUMBER_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Position:
    """How far one reader has come; as text it is the cursor.

    While the step from `base` to `target` is delivered, every row up to `row` was sent. The last
    live part was `seq` of the episode (`history`, `attempt`).
    """

    base: int = 0
    target: int = 0
    row: int = 0
    history: int = 0
    attempt: int = 0
    seq: int = 0

    @classmethod
    def parse(cls, cursor: str) -> "Position":
        """Return the position of a cursor; one that cannot be ours is the beginning."""
        if CURSOR.fullmatch(cursor) is None:
            return cls()
        numbers = tuple(map(int, cursor.split(".")))
        return cls(*numbers) if max(numbers) <= NUMBER_MAX else cls()

    def __str__(self) -> str:
        return f"{self.base}.{self.target}.{self.row}.{self.history}.{self.attempt}.{self.seq}"


class StreamServicer(StreamServiceServicer):
    """Follows chats for their readers."""

    def __init__(self, stores: Stores, live: LiveChats, *, groups: Groups) -> None:
        self._stores = stores
        self._live = live
        self._groups = groups

    async def Subscribe(  # noqa: N802 (the name is the proto's)
        self, request: api.SubscribeRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[api.SubscribeResponse]:
        """Send what is after the cursor, then what happens."""
        chat_id = chat_id_of(request.chat_id)
        reader = _Following(
            self._stores, chat_id, await caller_as_reader(self._groups), request.after_id
        )
        reader.position = Position.parse(request.cursor)
        with self._live.watch(reader.chat_id) as watcher:
            async for event in reader.catch_up():
                yield api.SubscribeResponse(event=event)
            while True:
                match await watcher.next():
                    case Moved(snapshot_version):
                        if snapshot_version > reader.position.target:
                            async for event in reader.catch_up():
                                yield api.SubscribeResponse(event=event)
                    case LivePart() as part:
                        if reader.accepts(part):
                            yield api.SubscribeResponse(event=reader.live_event(part))
                    case FellBehind():
                        yield _closed(api.CLOSE_REASON_RESYNC)
                        return
                    case GoingAway():
                        yield _closed(api.CLOSE_REASON_GOING_AWAY)
                        return


def _closed(reason: "api.CloseReason.ValueType") -> api.SubscribeResponse:
    return api.SubscribeResponse(closed=api.Closed(reason=reason))


class _Following:
    """One reader of one chat: turns committed states and live parts into events."""

    def __init__(self, stores: Stores, chat_id: ChatId, reader: Reader, after_id: int) -> None:
        self._stores = stores
        self.chat_id = chat_id
        self._reader = reader
        self._after_id = after_id
        self.position = Position()
        self._status: Status | None = None

    async def catch_up(self) -> AsyncIterator[event_pb2.ChatEvent]:
        """Yield what was committed since the position, in the fixed order, and move there."""
        chat = await self._stores.reading.get(self.chat_id, self._reader)
        state, seen = chat.state, self.position
        if seen.target > state.snapshot_version:
            # A cursor from a future that this chat has not seen says nothing about its past.
            seen = Position()
        base = seen.base if seen.row else seen.target
        # Only a reader at the very beginning has these messages from elsewhere.
        after_id = 0 if seen.target else self._after_id
        for message in await self._stores.chats.history(self.chat_id, base):
            if message.is_deleted or message.visibility is Visibility.MODEL:
                continue
            # The history was read after the state; what is newer comes with the next state.
            if message.id <= after_id or message.revision > state.snapshot_version:
                continue
            if message.id <= seen.row and message.revision <= seen.target:
                continue
            self.position = Position(base, state.snapshot_version, message.id)
            yield self._event(message=message_to_proto(self.chat_id, message))
        is_same_episode = (seen.history, seen.attempt) == (
            state.history_version,
            state.generation_attempt,
        )
        self.position = Position(
            base=state.snapshot_version,
            target=state.snapshot_version,
            history=state.history_version,
            attempt=state.generation_attempt,
            seq=seen.seq if is_same_episode else 0,
        )
        if state.status is not self._status:
            self._status = state.status
            yield self._event(status=event_pb2.StatusEvent(status=STATUS[state.status]))
        if state.last_error is not None:
            yield self._event(error=error_to_proto(state.last_error))
        if state.retry is not None and state.retry_version > seen.target:
            yield self._event(retry=retry_to_proto(state.retry))
        if seen.seq and not is_same_episode:
            yield self._event(preview_reset=event_pb2.PreviewResetEvent())

    def accepts(self, part: LivePart) -> bool:
        """Return whether a live part is the next of the episode this reader is in."""
        return (part.history_version, part.generation_attempt) == (
            self.position.history,
            self.position.attempt,
        ) and part.seq > self.position.seq

    def live_event(self, part: LivePart) -> event_pb2.ChatEvent:
        """Return a live part as an event, and move past it."""
        at = self.position
        self.position = Position(at.base, at.target, at.row, at.history, at.attempt, part.seq)
        return self._event(message_part=live_part_to_proto(part))

    def _event(self, **kind: object) -> event_pb2.ChatEvent:
        return event_pb2.ChatEvent(cursor=str(self.position), **kind)  # type: ignore[arg-type]
