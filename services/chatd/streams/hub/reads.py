"""The reads of a hub, with retries, and their interpretation."""

import logging
from typing import Protocol

from chatd.chats.domain.chat import ChatState, Message, Status
from chatd.primitives.domain.ids import ChatId
from chatd.streams.hub.steps import Snapshot
from chatd.streams.store.following import ChatReadRequest, FollowedChat
from chatd.workers.domain import is_ownerless
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

READ_TRIES = 5
READ_PAUSE_S = 0.1
READ_PAUSE_S_MAX = 1.0

logger = logging.getLogger(__name__)


class Reads(Protocol):
    """The reads of a hub."""

    async def read(self, asked: ChatReadRequest) -> FollowedChat | None:
        """Return the requested chat; None if it is gone or the reader may not read it."""
        ...

    async def stretch(
        self, chat_id: ChatId, *, behind_id: int, after: int, upto: int, limit: int
    ) -> tuple[Message, ...]:
        """Return the next live messages with a larger id that changed after a version."""
        ...


async def read_patiently(reads: Reads, clock: Clock, asked: ChatReadRequest) -> FollowedChat | None:
    """Return the requested chat, with retries; None if it is gone or the reader may not read it.

    Raises:
        DatabaseUnavailable: All tries failed.
    """
    pause_s = READ_PAUSE_S
    for tries in range(1, READ_TRIES + 1):
        try:
            return await reads.read(asked)
        except DatabaseUnavailable as error:
            if tries == READ_TRIES:
                logger.warning("a chat cannot be followed: %s", error)
                raise
            await clock.sleep(pause_s)
            pause_s = min(2 * pause_s, READ_PAUSE_S_MAX)
    raise AssertionError("the last try returns or raises")


def has_gap(read: FollowedChat) -> bool:
    """Return whether messages between a hub's version and a read are missing or deleted."""
    return not read.is_complete or any(message.is_deleted for message in read.messages)


def snapshot_of(read: FollowedChat) -> Snapshot:
    """Return a read without its messages."""
    return Snapshot(read.state, read.place_in_line, read.queue, read.asking)


def is_all_known(before: ChatState, after: ChatState, appended: tuple[Message, ...] | None) -> bool:
    """Return whether a commit of this process can be followed without a read.

    Queues, queue positions and the calls that a client is asked to execute are read; and a chat
    that goes to `waiting` without a new message may be gone.
    """
    is_next = after.snapshot_version == before.snapshot_version + 1
    is_queue_same = after.queue_version == before.queue_version
    is_history_known = appended is not None or (
        after.history_version == before.history_version and after.status is not Status.WAITING
    )
    return (
        is_next
        and is_queue_same
        and is_history_known
        and after.status is not Status.REQUIRES_ACTION
        and not is_ownerless(after)
    )
