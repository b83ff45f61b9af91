"""Turns a permission into a dispatch: the tool must still be offered, under its present journal."""

from collections.abc import Awaitable, Callable

from chatd.actions.domain.action import StoredAction
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Dispatch, Tools
from chatd.content.domain.turn_context import TurnContext
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.ids import ChatId, Owner


class CallDispatcher:
    """Makes dispatches of calls that a person allowed.

    Args:
        tools: The tools of all executors.
        facts: Returns the properties of a chat that its turns depend on.
    """

    def __init__(self, tools: Tools, facts: Callable[[ChatId], Awaitable[ChatFacts]]) -> None:
        self._tools = tools
        self._facts = facts

    async def dispatch(self, action: StoredAction, owner: Owner) -> Dispatch | None:
        """Return the dispatch of an allowed call; None if its tool is not offered any more.

        The execution id is the action's. Nothing was sent before, so the journal is today's.
        """
        facts = await self._facts(action.chat_id)
        context = TurnContext(
            action.chat_id,
            owner,
            action.mode,
            facts.ancestor_ids,
            mcp_server_ids=facts.mcp_server_ids,
            workspace_id=facts.workspace_id,
        )
        for spec in await self._tools.list_tools(context):
            if spec.name == action.tool_name and spec.server_id == action.mcp_server_id:
                call = ToolCall(
                    action.tool_call_id, action.tool_name, action.args_json, action.mcp_server_id
                )
                return Dispatch(
                    action.id, call, spec.executor, spec.journal_generation, action.mode
                )
        return None
