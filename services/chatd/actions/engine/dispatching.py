"""Turns a permission into a dispatch: the tool must still be offered, under its present journal."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chatd.actions.domain.action import StoredAction
from chatd.approvals.domain.judgement import Ask, Deny, arguments_digest
from chatd.approvals.engine.judge import Judge
from chatd.chats.domain.chat import Message
from chatd.chats.domain.commands import RememberedCall
from chatd.content.domain.messages import strictest
from chatd.content.domain.tools import BUILT_IN_TOOL_NAMES, Dispatch, Tools, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.language_model import ModelError
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.errors import CheckUnavailable, InvalidRequest
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.turns.domain.calls import is_workspace_away

NOT_OFFERED = "this did not run: its tool is not offered any more"


@dataclass(frozen=True, slots=True)
class Permitted:
    """A call that may run now, as it is dispatched, and the rule that remembers it."""

    dispatch: Dispatch
    remembered: RememberedCall | None = None


@dataclass(frozen=True, slots=True)
class NotPermitted:
    """A call that cannot run any more, though a person allowed it."""

    problem: str


class CallDispatcher:
    """Makes dispatches of calls that a person allowed.

    Args:
        tools: The tools of all executors.
        facts: Returns the properties of a chat that its turns depend on.
        judge: The approval rules, which may have changed since the person was asked.
        history: Returns the live messages of a chat.
    """

    def __init__(
        self,
        tools: Tools,
        facts: Callable[[ChatId], Awaitable[ChatFacts]],
        judge: Judge,
        history: Callable[[ChatId], Awaitable[tuple[Message, ...]]],
    ) -> None:
        self._tools = tools
        self._facts = facts
        self._judge = judge
        self._history = history

    async def dispatch(
        self, action: StoredAction, owner: Owner, *, is_remembered: bool = False
    ) -> Permitted | NotPermitted:
        """Return the dispatch of an allowed call, unless it cannot run any more.

        The execution id is the action's. Nothing was sent before, so the journal is today's. The
        mode is the stricter one of the turn that asked and of the chat now.

        Raises:
            InvalidRequest: The approval is to be remembered, and a rule asks each time.
            CheckUnavailable: The workspace does not offer its tools now, or mcpgateway does not
                answer; the action stays open.
        """
        facts = await self._facts(action.chat_id)
        mode = strictest(action.mode, facts.mode)
        context = TurnContext(
            action.chat_id,
            owner,
            mode=mode,
            ancestor_ids=facts.ancestor_ids,
            mcp_server_ids=facts.mcp_server_ids,
            workspace_id=facts.workspace_id,
        )
        call = action.call
        offered = await self._offered(context)
        for spec in offered:
            if spec.name == action.tool_name and spec.server_id == action.mcp_server_id:
                history = await self._history(action.chat_id)
                specs = {spec.name: spec}
                judgement = (await self._judge.judge(context, history, [call], specs))[
                    call.tool_call_id
                ]
                if isinstance(judgement, Deny):
                    return NotPermitted(f"this did not run: {judgement.reason}")
                if is_remembered and isinstance(judgement, Ask) and not judgement.is_rememberable:
                    raise InvalidRequest("remember", "is not possible: a rule asks each time")
                dispatch = Dispatch(
                    action.id,
                    call,
                    spec.executor,
                    spec.journal_generation,
                    mode,
                    arguments_digest(call),
                )
                if not is_remembered:
                    return Permitted(dispatch)
                rule = await self._judge.remembered(context, history, call, spec)
                return Permitted(dispatch, rule)
        is_away = is_workspace_away(action.tool_name, {spec.name: spec for spec in offered})
        if mode is not action.mode and not is_away:
            return NotPermitted(f"{NOT_OFFERED} in {mode} mode, in which nothing is changed")
        if action.tool_name in BUILT_IN_TOOL_NAMES:
            raise CheckUnavailable("tool")
        return NotPermitted(NOT_OFFERED)

    async def _offered(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools of a chat.

        Raises:
            CheckUnavailable: It cannot be found out now which ones there are.
        """
        try:
            return await self._tools.list_tools(context)
        except ModelError as unknown:
            raise CheckUnavailable("tool") from unknown
