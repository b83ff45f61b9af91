"""Adds the instruction files of subdirectories to the results of calls that enter them.

A file is given once, as long as it is in the prompt: after a compaction it is given again. Whether
a directory has one is remembered, so that only the first call in a directory asks the node.
"""

import logging
from dataclasses import replace
from typing import Final, Protocol

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.sanitizing import sanitized
from chatd.content.domain.tools import (
    Execution,
    Executor,
    Found,
    InputRequired,
    Outcome,
    Tools,
    ToolSpec,
)
from chatd.content.domain.truncation import truncated
from chatd.content.domain.turn_context import TurnContext
from chatd.instructions.domain.nested import (
    NESTED_BYTES_MAX,
    NESTED_FILE,
    entered_directories,
    is_in_prompt,
    names_absolute_path,
    with_instructions,
)
from chatd.primitives.domain.ids import ChatId, Owner
from parley.cache import BoundedCache

DIRECTORIES_KNOWN_MAX: Final = 10_000

logger = logging.getLogger(__name__)


class TextFiles(Protocol):
    """The files of workspaces."""

    async def root_path(self, chat_id: ChatId) -> str:
        """Return the directory of a chat's files as its tools name it; empty if not known.

        Raises:
            ChatError: The workspace cannot be found now.
        """
        ...

    async def text(self, chat_id: ChatId, owner: Owner, path: str) -> str | None:
        """Return the text of a file; None if there is none.

        Raises:
            ChatError: The workspace cannot be read now.
        """
        ...


class NestedInstructionTools:
    """Wraps tools, and adds instruction files to their results.

    Args:
        tools: The wrapped tools.
        files: The files of workspaces.
    """

    def __init__(self, tools: Tools, files: TextFiles) -> None:
        self._tools = tools
        self._files = files
        #: The text of each directory's file by chat; empty if there is none.
        self._texts: BoundedCache[tuple[ChatId, str], str] = BoundedCache(DIRECTORIES_KNOWN_MAX)
        #: The version of the history at which a file was given last.
        self._given: BoundedCache[tuple[ChatId, str], int] = BoundedCache(DIRECTORIES_KNOWN_MAX)

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools of the wrapped source."""
        return await self._tools.list_tools(context)

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Execute a call."""
        outcome = await self._tools.execute(execution)
        dispatch = execution.dispatch
        if (
            dispatch.executor is not Executor.TOOLRUNNER
            or not isinstance(outcome, Outcome)
            or outcome.outcome is not ToolOutcome.DONE
        ):
            return outcome
        try:
            call, root_path = dispatch.call, ""
            if names_absolute_path(call.args_json):
                root_path = await self._files.root_path(execution.chat_id)
            entered = entered_directories(call.tool_name, call.args_json, root_path)
            files = [each for name in entered if (each := await self._unread(execution, name))]
            if not files:
                return outcome
            text, paths = with_instructions(outcome.result_json, files, execution.budget_bytes)
        except Exception as unread:  # The call has run: nothing may replace its result.
            logger.warning("instruction files of a directory cannot be read: %r", unread)
            return outcome
        for path in paths:
            self._given.put((execution.chat_id, path), execution.context.history_version)
        return replace(outcome, result_json=text)

    async def find(self, execution: Execution) -> Found:
        """Forward the request."""
        return await self._tools.find(execution)

    async def cancel(self, execution: Execution) -> None:
        """Forward the cancellation."""
        await self._tools.cancel(execution)

    async def _unread(self, execution: Execution, directory: str) -> tuple[str, str] | None:
        """Return the path and text of a directory's file, unless the model has read it.

        Raises:
            ChatError: The workspace cannot be read now.
        """
        path = f"{directory}/{NESTED_FILE}"
        key = (execution.chat_id, path)
        text = self._texts.get(key)
        if text is None:
            read = await self._files.text(execution.chat_id, execution.owner, path)
            text = truncated(sanitized(read or ""), NESTED_BYTES_MAX)
            self._texts.put(key, text)
        context = execution.context
        # Calls of one step do not see the results of one another.
        is_given = self._given.get(key) == context.history_version
        if not text or is_given or is_in_prompt(context.prompt(), path):
            return None
        return path, text
