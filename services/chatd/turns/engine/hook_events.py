"""Sends what the turns of a chat do to its hooks."""

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from chatd.chats.domain.chat import ChatState, Message, NewMessage
from chatd.chats.domain.commands import CommitStep
from chatd.chats.domain.pieces import CHAT_SUMMARIZED
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import HookAddition, ToolResult
from chatd.hooks.domain.answers import Denied, Verdict, bounded_additions
from chatd.hooks.domain.hooks import HookEvent, HookNotice
from chatd.turns.domain.hook_additions import (
    addition_messages,
    has_additions,
    notice_messages,
)
from chatd.turns.domain.ports import Hooks
from chatd.turns.domain.steps import CallModel, Compact
from chatd.turns.domain.stop_hooks import continuation, went_on
from chatd.turns.engine.preparation import PreparedTurn
from chatd.turns.engine.session import Session
from parley.tasks import Overtaken, run_unless

T = TypeVar("T")


class EventSuperseded(Exception):
    """The chat changed while an event was sent.

    Attributes:
        newest: Its state now.
    """

    def __init__(self, newest: ChatState) -> None:
        super().__init__(newest.chat_id)
        self.newest = newest


@dataclass(frozen=True, slots=True)
class Stopping:
    """What hooks say to the end of a turn.

    Attributes:
        notices: The message with their notices for people.
        going_on: The message with which the turn goes on; None if it may end.
    """

    notices: tuple[NewMessage, ...] = ()
    going_on: NewMessage | None = None


class HookEvents:
    """The events of one claimed chat, each sent once.

    Every method raises HookFailed if a hook failed that fails closed, and EventSuperseded if the
    chat was interrupted or changed meanwhile, which is not kept waiting for hooks. The
    keys of events are made of stored values, so that the next owner of the chat repeats an event
    with the same id.
    """

    def __init__(self, hooks: Hooks, session: Session) -> None:
        self._hooks = hooks
        self._session = session
        self._sent: set[tuple[HookEvent, str]] = set()
        self._stops: dict[str, Verdict] = {}  # On the ends of turns, by the keys of their events.
        self._hints: dict[str, tuple[HookAddition, ...]] = {}  # For summaries, by the same keys.

    async def before(
        self, prepared: PreparedTurn, action: Compact | CallModel
    ) -> tuple[HookAddition, ...]:
        """Send that a chat begins, or that its history will be summarised.

        What hooks add to the beginning is stored, what they add to a summary is returned.
        """
        if isinstance(action, Compact):
            return await self._compaction(HookEvent.PRE_COMPACT, prepared, action)
        history = self._session.history.messages
        if any(message.role is Role.ASSISTANT for message in history):
            return ()
        event, key = HookEvent.SESSION_START, str(prepared.turn_id)
        added = await self._send(prepared, HookNotice(event, key, {"source": "startup"}))
        if not has_additions(history, event):
            await self._store(addition_messages(added))
        return ()

    async def compacted(self, prepared: PreparedTurn, action: Compact) -> None:
        """Send that the history was summarised, and store the notices of hooks."""
        added = await self._compaction(HookEvent.POST_COMPACT, prepared, action)
        await self._store(notice_messages(added))

    async def results(self, prepared: PreparedTurn) -> None:
        """Send the stored results of the calls of the last answer, and store what hooks add.

        A new owner sends them again, since it cannot know whether the last one did, unless
        something that hooks add is stored after them.
        """
        newest = _newest_results(self._session.history.messages)
        notices = (_notice_of(message, result) for message, result in newest)
        await self._store(addition_messages(await self._send(prepared, *notices)))

    async def stopping(self, prepared: PreparedTurn | None) -> Stopping:
        """Send that a turn ends; return what hooks say to that. One lets it go on once."""
        if prepared is None:
            return Stopping()
        is_continued = went_on(self._session.history.messages, prepared.turn_id)
        key = f"{prepared.turn_id} continued" if is_continued else str(prepared.turn_id)
        if key not in self._stops:
            if self._hooks.are_absent(HookEvent.STOP):
                return Stopping()
            notice = HookNotice(HookEvent.STOP, key, {"continued": is_continued})
            self._stops[key] = await self._sent_first(self._hooks.stop(prepared.context, notice))
        verdict = self._stops[key]
        notices = notice_messages(verdict.added)
        if isinstance(verdict, Denied) and not is_continued:
            return Stopping(notices, continuation(verdict))
        return Stopping(notices)

    async def _compaction(
        self, event: HookEvent, prepared: PreparedTurn, action: Compact
    ) -> tuple[HookAddition, ...]:
        key = f"{prepared.turn_id} {self._session.state.history_version}"
        data = {"source": action.source.value}
        added = await self._send(prepared, HookNotice(event, key, data))
        return self._hints.setdefault(f"{event} {key}", bounded_additions(added))

    async def _send(self, prepared: PreparedTurn, *notices: HookNotice) -> tuple[HookAddition, ...]:
        """Send events that were not sent yet; return what hooks add."""
        unsent = [
            each
            for each in notices
            if (each.event, each.key) not in self._sent and not self._hooks.are_absent(each.event)
        ]
        if not unsent:
            return ()
        added = await self._sent_first(self._hooks.notify(prepared.context, unsent))
        self._sent.update((each.event, each.key) for each in unsent)
        return added

    async def _store(self, messages: tuple[NewMessage, ...]) -> None:
        """Store the messages with what hooks add.

        That begins a new episode, which would forget that a fallback model makes the next attempt.
        A fallback follows only a call of the model, before which this was stored already; other
        attempts can fail before any event is sent.
        """
        session = self._session
        retry = session.state.retry
        if not messages or (retry is not None and retry.fallback is not None):
            return
        if not await session.apply(CommitStep(session.fence, messages), messages):
            raise EventSuperseded(session.state)

    async def _sent_first(self, sending: Coroutine[Any, Any, T]) -> T:
        """Return what a delivery gives, unless the chat changes before it ends."""
        session = self._session
        try:
            return await run_unless(sending, session.superseded())
        except Overtaken:
            raise EventSuperseded(await session.superseded()) from None


def _notice_of(message: Message, result: ToolResult) -> HookNotice:
    data = {
        "tool_use_id": result.tool_call_id,
        "tool_name": result.tool_name,
        "outcome": result.outcome.value,
        "tool_response": result.result_json,
    }
    key = f"{message.id} {result.tool_call_id}"
    return HookNotice(HookEvent.POST_TOOL_USE, key, data, result.tool_name)


def _newest_results(messages: list[Message]) -> Iterator[tuple[Message, ToolResult]]:
    """Return the results after the last answer, with their messages."""
    for message in reversed(messages):
        if message.role is not Role.TOOL:
            return
        for part in message.content:
            if isinstance(part, ToolResult) and part.tool_name != CHAT_SUMMARIZED:
                yield message, part
