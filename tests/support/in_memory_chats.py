"""Chats without a database: the same rules, kept in a dictionary."""

from datetime import UTC, datetime

from chatd.domain.chat import ChatId, ChatState, Message, MessageId
from chatd.domain.commands import Command
from chatd.domain.transitions import decide
from chatd.domain.writes import AppendMessages
from chatd.engine.live import LiveChats

CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)


class InMemoryChats:
    """Executes decisions in memory; remembers every command it was given."""

    def __init__(self, live: LiveChats, *states: ChatState) -> None:
        self._live = live
        self._states = {state.chat_id: state for state in states}
        self._messages: dict[ChatId, list[Message]] = {state.chat_id: [] for state in states}
        self.commands: list[Command] = []

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Decide and keep what was decided."""
        self.commands.append(command)
        seen = self._states[chat_id]
        decision = decide(seen, command)
        for write in decision.writes:
            if isinstance(write, AppendMessages):
                self._append(seen, decision.state, write)
        self._states[chat_id] = decision.state
        self._live.moved(decision.state)
        return decision.state

    async def state(self, chat_id: ChatId) -> ChatState:
        """Return the present state."""
        return self._states[chat_id]

    async def history(self, chat_id: ChatId) -> tuple[Message, ...]:
        """Return the messages in order."""
        return tuple(self._messages[chat_id])

    def _append(self, seen: ChatState, decided: ChatState, write: AppendMessages) -> None:
        for place, message in enumerate(write.messages):
            self._messages[seen.chat_id].append(
                Message(
                    id=MessageId(seen.next_message_id + place),
                    revision=decided.snapshot_version,
                    role=message.role,
                    content=message.content,
                    created_by=message.created_by,
                    created_at=CREATED_AT,
                )
            )
