"""Where the events of chats come from: the port, and its adapter to chatd's Subscribe."""

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import grpc

from gateway.chatd import Chatd
from parley.api.chat.v1 import event_pb2, stream_service_pb2
from parley.api.chat.v1.chat_service_pb2 import GetChatRequest
from parley.identity import User
from parley.rpc import acting_for

_log = logging.getLogger(__name__)


class Ending(StrEnum):
    """Why a subscription has no more events."""

    RESYNC = "resync"  # The reader has to begin anew, without a cursor.
    GOING_AWAY = "going_away"  # The reader goes on elsewhere, with its cursor.
    NOT_FOUND = "not_found"  # The chat is none of the reader's any more.


@dataclass(frozen=True, slots=True)
class Ended:
    """The last thing a subscription gives."""

    why: Ending


class Subscription(Protocol):
    """One reader's events, ending with exactly one `Ended`."""

    def __aiter__(self) -> AsyncIterator[event_pb2.ChatEvent | Ended]:
        """Give the events in order."""
        ...

    def close(self) -> None:
        """Let go; safe to call at any time and more than once."""
        ...


class ChatEvents(Protocol):
    """Where the events of chats come from."""

    async def open(self, user: User, chat_id: str, *, cursor: str, after_id: int) -> Subscription:
        """Begin to follow a chat for a user.

        Raises:
            UpstreamRefused: There is no such chat for this user, or nobody answers.
        """
        ...


class ChatdEvents:
    """Events over one Subscribe call per reader."""

    def __init__(self, chatd: Chatd) -> None:
        self._chatd = chatd

    async def open(
        self, user: User, chat_id: str, *, cursor: str, after_id: int
    ) -> "ChatdSubscription":
        """Begin to follow a chat for a user.

        The chat is read first: a reader at the end of the stream may hear nothing for long, and
        until then nobody could tell a quiet chat from an absent one.

        Raises:
            UpstreamRefused: There is no such chat for this user, or nobody answers.
        """
        asked = GetChatRequest(chat_id=chat_id)
        _, stubs = await self._chatd.ask(user, chat_id, lambda stubs: stubs.chats.GetChat(asked))
        with acting_for(user):
            request = stream_service_pb2.SubscribeRequest(
                chat_id=chat_id, cursor=cursor, after_id=after_id
            )
            return ChatdSubscription(stubs.streams.Subscribe(request))


class ChatdSubscription:
    """A running Subscribe call."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def __aiter__(self) -> AsyncIterator[event_pb2.ChatEvent | Ended]:
        """Give what chatd sends; a lost connection ends it like a process that stops."""
        try:
            async for response in self._call:
                if response.WhichOneof("kind") == "closed":
                    yield Ended(_ending_of_close(response.closed.reason))
                    return
                yield response.event
        except grpc.aio.AioRpcError as error:
            is_gone = error.code() is grpc.StatusCode.NOT_FOUND
            if not is_gone:
                _log.warning("a subscription broke off: %s", error.code().name)
            yield Ended(Ending.NOT_FOUND if is_gone else Ending.GOING_AWAY)
            return
        yield Ended(Ending.GOING_AWAY)

    def close(self) -> None:
        """End the call."""
        self._call.cancel()


def _ending_of_close(reason: int) -> Ending:
    match reason:
        case stream_service_pb2.CLOSE_REASON_RESYNC:
            return Ending.RESYNC
        case stream_service_pb2.CLOSE_REASON_NOT_FOUND:
            return Ending.NOT_FOUND
        case _:
            return Ending.GOING_AWAY
