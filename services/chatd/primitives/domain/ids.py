"""Ids of chats, messages, users and workers."""

from dataclasses import dataclass
from typing import NewType

ChatId = NewType("ChatId", str)


MessageId = NewType("MessageId", int)


OwnerId = NewType("OwnerId", str)


WorkerId = NewType("WorkerId", str)


ExecutionId = NewType("ExecutionId", str)


RevertId = NewType("RevertId", str)
QueuedMessageId = NewType("QueuedMessageId", str)


NO_MESSAGE = MessageId(0)


@dataclass(frozen=True, slots=True)
class Owner:
    """The user whose credentials a turn uses, with their role when it was admitted."""

    id: OwnerId
    role: str


@dataclass(frozen=True, slots=True)
class Fence:
    """The versions that a worker read when it claimed a chat; its writes must match them."""

    owner_epoch: int
    history_version: int
    generation_attempt: int


@dataclass(frozen=True, slots=True)
class OwnerClaim:
    """The claim under which a tool of chatd acts; it ends with its turn or the epoch of the chat.

    Attributes:
        turn_id: The message that started the turn. After an interrupt a queued message starts the
            next one in the same epoch.
    """

    chat_id: ChatId
    owner_epoch: int
    turn_id: MessageId
