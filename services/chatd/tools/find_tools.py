"""Executes the search for tools; every other tool of chatd is passed on."""

import json
import logging
from typing import Final

import grpc
import msgspec

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import (
    FIND_TOOLS,
    Execution,
    Found,
    InputRequired,
    NeverSeen,
    Outcome,
    Tools,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.language_model import ModelError
from chatd.turns.domain.tool_search import matches

DESCRIPTION_CHARACTERS_MAX: Final = 600
INCOMPLETE: Final = "The tools of some servers cannot be listed now; search again later for them."

logger = logging.getLogger(__name__)


class _Arguments(msgspec.Struct, frozen=True):
    queries: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class SearchingTools:
    """Tools that chatd executes itself, with the search among the tools of MCP servers.

    Args:
        others: The other tools of chatd.
        sources: Where the tools of MCP servers come from, besides other tools.
    """

    def __init__(self, others: Tools, *sources: Tools) -> None:
        self._others = others
        self._sources = sources

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the other tools; a turn adds the search itself if it needs one."""
        return await self._others.list_tools(context)

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Search, or pass the call on."""
        if execution.dispatch.call.tool_name != FIND_TOOLS:
            return await self._others.execute(execution)
        try:
            given = msgspec.json.decode(execution.dispatch.call.args_json, type=_Arguments)
        except msgspec.MsgspecError as error:
            return _failed(f"the arguments cannot be read: {error}")
        if not given.queries and not given.names:
            return _failed("give queries or names")
        known, is_complete = await self._known(execution.context)
        found = matches(known, given.queries, given.names)
        names = {spec.name for spec in known}
        told: dict[str, object] = {"tools": [_told(spec) for spec in found]}
        if missing := [name for name in given.names if name not in names]:
            told["not_found"] = missing
        if not is_complete:
            told["warning"] = INCOMPLETE
        return Outcome(ToolOutcome.DONE, json.dumps(told, ensure_ascii=False))

    async def _known(self, context: TurnContext) -> tuple[list[ToolSpec], bool]:
        """Return the tools of MCP servers, and whether all sources could be listed."""
        listed: list[ToolSpec] = []
        is_complete = True
        for source in self._sources:
            try:
                listed += await source.list_tools(context)
            except (grpc.aio.AioRpcError, ModelError) as error:
                is_complete = False
                logger.warning(
                    "tools are not searched: %s",
                    error.code().name if isinstance(error, grpc.aio.AioRpcError) else error,
                    extra={"chat_id": context.chat_id},
                )
        return [spec for spec in listed if spec.server_id], is_complete

    async def find(self, execution: Execution) -> Found:
        """Return that a search may be made again, or pass the request on."""
        if execution.dispatch.call.tool_name == FIND_TOOLS:
            return NeverSeen()
        return await self._others.find(execution)

    async def cancel(self, execution: Execution) -> None:
        """Do nothing for a search, or pass the cancellation on."""
        if execution.dispatch.call.tool_name != FIND_TOOLS:
            await self._others.cancel(execution)


def _told(spec: ToolSpec) -> dict[str, object]:
    return {
        "name": spec.name,
        "description": spec.description[:DESCRIPTION_CHARACTERS_MAX],
        "parameters": json.loads(spec.input_schema_json or "{}"),
    }


def _failed(problem: str) -> Outcome:
    return Outcome(ToolOutcome.FAILED, json.dumps({"ok": False, "error": problem}))
