"""Sends what the turns of a chat do to its hooks."""

from collections.abc import Iterator

from chatd.chats.domain.chat import ChatState, Message
from chatd.chats.domain.pieces import CHAT_SUMMARIZED
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolResult
from chatd.hooks.domain.hooks import HookEvent, HookNotice
from chatd.turns.domain.ports import Hooks
from chatd.turns.domain.steps import CallModel, Compact
from chatd.turns.engine.preparation import PreparedTurn
from chatd.turns.engine.session import Session
from parley.tasks import Overtaken, run_unless


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

    async def stopping(self, prepared: PreparedTurn | None) -> None:
        """Send that a turn ends with an answer."""
        if prepared is not None:
            await self._send(prepared, HookNotice(HookEvent.STOP, str(prepared.turn_id), {}))

    async def _compaction(self, event: HookEvent, prepared: PreparedTurn, action: Compact) -> None:
        key = f"{prepared.turn_id} {self._session.state.history_version}"
        await self._send(prepared, HookNotice(event, key, {"source": action.source.value}))

    async def _send(self, prepared: PreparedTurn, *notices: HookNotice) -> None:
        unsent = [each for each in notices if (each.event, each.key) not in self._sent]
        if not unsent:
            return
        session = self._session
        try:
            await run_unless(self._hooks.notify(prepared.context, unsent), session.superseded())
        except Overtaken:
            raise EventSuperseded(await session.superseded()) from None
        self._sent.update((each.event, each.key) for each in unsent)


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
