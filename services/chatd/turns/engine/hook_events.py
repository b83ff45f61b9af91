"""Sends what the turns of a chat do to its hooks."""

from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from chatd.chats.domain.chat import ChatState, Message, NewMessage
from chatd.chats.domain.pieces import CHAT_SUMMARIZED
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolResult
from chatd.hooks.domain.hooks import HookEvent, HookNotice
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
        self._stops: dict[str, str | None] = {}  # Why turns go on, by the keys of their events.

    async def before(self, prepared: PreparedTurn, action: Compact | CallModel) -> None:
        """Send that a chat begins, or that its history will be summarised."""
        if isinstance(action, Compact):
            await self._compaction(HookEvent.PRE_COMPACT, prepared, action)
            return
        if any(message.role is Role.ASSISTANT for message in self._session.history.messages):
            return
        key = str(prepared.turn_id)
        await self._send(prepared, HookNotice(HookEvent.SESSION_START, key, {"source": "startup"}))

    async def compacted(self, prepared: PreparedTurn, action: Compact) -> None:
        """Send that the history was summarised."""
        await self._compaction(HookEvent.POST_COMPACT, prepared, action)

    async def results(self, prepared: PreparedTurn) -> None:
        """Send the stored results of the calls of the last answer.

        A new owner sends them again, since it cannot know whether the last one did.
        """
        newest = _newest_results(self._session.history.messages)
        await self._send(prepared, *(_notice_of(message, result) for message, result in newest))

    async def stopping(self, prepared: PreparedTurn | None) -> NewMessage | None:
        """Send that a turn ends; return the message with which a hook lets it go on, once."""
        if prepared is None:
            return None
        is_continued = went_on(self._session.history.messages, prepared.turn_id)
        key = f"{prepared.turn_id} continued" if is_continued else str(prepared.turn_id)
        if key not in self._stops:
            notice = HookNotice(HookEvent.STOP, key, {"continued": is_continued})
            self._stops[key] = await self._sent_first(self._hooks.stop(prepared.context, notice))
        reason = self._stops[key]
        return None if reason is None or is_continued else continuation(reason)

    async def _compaction(self, event: HookEvent, prepared: PreparedTurn, action: Compact) -> None:
        key = f"{prepared.turn_id} {self._session.state.history_version}"
        await self._send(prepared, HookNotice(event, key, {"source": action.source.value}))

    async def _send(self, prepared: PreparedTurn, *notices: HookNotice) -> None:
        unsent = [each for each in notices if (each.event, each.key) not in self._sent]
        if not unsent:
            return
        await self._sent_first(self._hooks.notify(prepared.context, unsent))
        self._sent.update((each.event, each.key) for each in unsent)

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
