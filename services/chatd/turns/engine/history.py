"""The cache of histories, so that a prompt is not read again for every step."""

from datetime import datetime

from msgspec.structs import astuple

from chatd.chats.domain.chat import ChatState, Message, NewMessage
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, MessageId
from chatd.turns.domain.ports import Chats
from chatd.turns.domain.prompt import PromptBuilder
from parley.cache import BoundedCache

# The size limit of all histories at rest: those of thousands of short chats, or a few long ones.
KEPT_BYTES_MAX = 64 * 1024 * 1024
# The size of a message beside its text, as stored and once more in the prompt.
MESSAGE_BYTES = 2000


class History:
    """The live messages of one chat as of some version of its history.

    Attributes:
        messages: The messages.
        prompt: Builds the prompt from them.
        bytes: Their approximate size.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.bytes = 0
        self.prompt = PromptBuilder()
        self._version = 0

    async def catch_up(self, chats: Chats, state: ChatState) -> None:
        """Read the changes, if there are any, up to the history of `state`."""
        if self._version >= state.history_version:
            return
        changes = await chats.history(state.chat_id, self._version)
        if changes:
            changed = {message.id for message in changes}
            kept = [message for message in self.messages if message.id not in changed]
            self.messages = kept + [message for message in changes if not message.is_deleted]
            self.messages.sort(key=lambda message: message.id)
            self.bytes = sum(map(_bytes_of, self.messages))
        self._version = state.history_version

    def text_of(self, message_id: MessageId) -> str:
        """Return the text of one message; empty if it is not here."""
        for message in reversed(self.messages):
            if message.id <= message_id:
                found = message.content if message.id == message_id else ()
                return " ".join(part.text for part in found if isinstance(part, Text))
        return ""

    def wrote(
        self, before: ChatState, after: ChatState, messages: tuple[NewMessage, ...], at: datetime
    ) -> None:
        """Apply a write of this process, if it contains all messages that were added."""
        is_all = after.next_message_id - before.next_message_id == len(messages)
        if not is_all or self._version != before.history_version:
            return
        first_id = before.next_message_id
        added = [
            message.stored(MessageId(first_id + place), after.snapshot_version, at)
            for place, message in enumerate(messages)
        ]
        self.messages += added
        self.bytes += sum(map(_bytes_of, added))
        self._version = after.history_version


class Histories:
    """The histories of chats at rest, evicted by least recent use."""

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._kept: BoundedCache[ChatId, History] = BoundedCache(
            size_max=bytes_max, size_of=lambda history: history.bytes
        )

    def take(self, chat_id: ChatId) -> History:
        """Remove and return a chat's history; the caller keeps it again if it is valid."""
        return self._kept.pop(chat_id) or History()

    def wrote(
        self, before: ChatState, after: ChatState, messages: tuple[NewMessage, ...], at: datetime
    ) -> None:
        """Apply a write of this process to the history of a chat at rest."""
        history = self._kept.pop(after.chat_id)
        if history is not None:
            history.wrote(before, after, messages, at)
            self.keep(after.chat_id, history)

    def keep(self, chat_id: ChatId, history: History) -> None:
        """Keep a history until it is taken or evicted."""
        self._kept.put(chat_id, history)


def _bytes_of(message: Message) -> int:
    words = (
        len(value) for part in message.content for value in astuple(part) if isinstance(value, str)
    )
    return MESSAGE_BYTES + sum(words)
