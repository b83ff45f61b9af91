"""The ports of the delivery of notifications."""

from typing import Protocol

from chatd.chats.domain.chat import Message
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.push.domain.delivery import Answer
from chatd.push.domain.notification import ChatFacts, Notification
from chatd.push.domain.subscription import PushTarget


class ChatReader(Protocol):
    """Reads chats whose owners are told of changes."""

    async def facts(self, chat_id: ChatId) -> ChatFacts | None:
        """Return the facts of a chat; None if it is deleted or its owner is suspended."""
        ...

    async def last_answer(self, chat_id: ChatId) -> Message | None:
        """Return the newest answer of a chat."""
        ...


class StoredTargets(Protocol):
    """The devices of users."""

    async def targets(self, owner_id: OwnerId) -> tuple[PushTarget, ...]:
        """Return the devices of a user."""
        ...


class DeliveryRecords(Protocol):
    """Keeps what became of deliveries."""

    async def record(self, target: PushTarget, problem: str) -> None:
        """Record that a notification was accepted, or why it was not."""
        ...

    async def delete_ended(self, target: PushTarget) -> None:
        """Delete a subscription of which the push service says that it has ended."""
        ...


class NotificationSender(Protocol):
    """Sends notifications."""

    async def send(self, target: PushTarget, notification: Notification) -> Answer:
        """Send a notification to a device, and return what became of it.

        Raises:
            DatabaseUnavailable: The key pair cannot be read now.
        """
        ...
