"""The histories that this process keeps, so that a prompt is not read anew for every step."""

from collections import OrderedDict
from datetime import datetime

from chatd.domain.chat import ChatId, ChatState, Message, MessageId, NewMessage
from chatd.domain.parts import Text
from chatd.domain.ports import Chats
from chatd.domain.prompt import GrowingPrompt

CHATS_MAX = 256


class History:
    """The live messages of one chat as of some version of its history."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.prompt = GrowingPrompt()
        self._version = 0

    async def catch_up(self, chats: Chats, state: ChatState) -> None:
        """Read what changed, if anything did, up to the history of `state`."""
        if self._version >= state.history_version:
            return
        changes = await chats.history(state.chat_id, self._version)
        if changes:
            changed = {message.id for message in changes}
            kept = [message for message in self.messages if message.id not in changed]
            self.messages = kept + [message for message in changes if not message.is_deleted]
            self.messages.sort(key=lambda message: message.id)
        self._version = state.history_version

    def text_of(self, message_id: MessageId) -> str:
        """Return the words of one message, nothing if it is not here."""
        for message in reversed(self.messages):
            if message.id <= message_id:
                found = message.content if message.id == message_id else ()
                return " ".join(part.text for part in found if isinstance(part, Text))
        return ""

    def wrote(
        self, before: ChatState, after: ChatState, messages: tuple[NewMessage, ...], at: datetime
    ) -> None:
        """Take over what this process just wrote, if that is all that was added."""
        is_all = after.next_message_id - before.next_message_id == len(messages)
        if not is_all or self._version != before.history_version:
            return
        first_id = before.next_message_id
        self.messages += [
            message.stored(MessageId(first_id + place), after.snapshot_version, at)
            for place, message in enumerate(messages)
        ]
        self._version = after.history_version


class Histories:
    """The histories of chats that rest, the most recently used ones."""

    def __init__(self, chats_max: int = CHATS_MAX) -> None:
        self._chats_max = chats_max
        self._kept: OrderedDict[ChatId, History] = OrderedDict()

    def take(self, chat_id: ChatId) -> History:
        """Return the history of a chat; whoever took it keeps it when done, if it is still good."""
        return self._kept.pop(chat_id, None) or History()

    def wrote(
        self, before: ChatState, after: ChatState, messages: tuple[NewMessage, ...], at: datetime
    ) -> None:
        """Let the history of a chat that rests take over what this process just wrote."""
        history = self._kept.get(after.chat_id)
        if history is not None:
            history.wrote(before, after, messages, at)

    def keep(self, chat_id: ChatId, history: History) -> None:
        """Keep a history until somebody takes it or others are used more recently."""
        self._kept[chat_id] = history
        if len(self._kept) > self._chats_max:
            self._kept.popitem(last=False)
