"""All workspace tools: their names, arguments and functions."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import grpc

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.tools import (
    UNKNOWN_OUTCOME,
    EditStyle,
    Executor,
    ExecutorUnreachable,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.tools.workspace import attachment as attaching
from chatd.tools.workspace import execute
from chatd.tools.workspace import file_changes as changing
from chatd.tools.workspace import file_reading as reading
from chatd.tools.workspace import file_search as finding
from chatd.tools.workspace import processes as process_tools
from chatd.tools.workspace.arguments import BadArguments, Input, read, schema_of
from chatd.tools.workspace.call import RETURN_S, Call, NodeAway, failure_reason, is_lost
from chatd.tools.workspace.results import failed, misused, refused
from chatd.workspaces.clients.failures import JOURNAL_CHANGED, plain_problem


@dataclass(frozen=True)
class Tool:
    """A tool of a workspace.

    Attributes:
        takes: The type of its arguments.
        run: The function; it may raise the errors of its requests.
        has_effect: Whether it changes something, so that a lost response must be looked up.
        edit_style: Edit style of the models that it is offered to, None for all.
    """

    name: str
    description: str
    takes: type[Input]
    run: Callable[[Call, Any], Awaitable[Outcome]]
    has_effect: bool = False
    edit_style: EditStyle | None = None

    @cached_property
    def input_schema_json(self) -> str:
        """The JSON schema of its arguments."""
        return schema_of(self.takes)

    def spec(self, journal_generation: str) -> ToolSpec:
        """Return the tool as offered to a model."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            input_schema_json=self.input_schema_json,
            executor=Executor.TOOLRUNNER,
            journal_generation=journal_generation,
            edit_style=self.edit_style,
        )

    async def call(self, call: Call) -> Outcome:
        """Execute a call; invalid arguments are returned as its result.

        Raises:
            ExecutorUnreachable: it may have had its effect; only the journal has the outcome.
        """
        return replace(await self._run(call), reached=call.reaching.total())

    async def _run(self, call: Call) -> Outcome:
        try:
            return await self.run(call, read(self.takes, call.execution.dispatch.call.args_json))
        except BadArguments as error:
            return misused(error)
        except NodeAway as away:
            return self._lost(away.cause, away)
        except grpc.aio.AioRpcError as error:
            return self._after(error)

    def _after(self, error: grpc.aio.AioRpcError) -> Outcome:
        if is_lost(error):
            return self._lost(failure_reason(error), error)
        problem = plain_problem(error)
        return UNKNOWN_OUTCOME if problem.reason == JOURNAL_CHANGED else refused(problem)

    def _lost(self, cause: str, error: Exception) -> Outcome:
        if self.has_effect:
            raise ExecutorUnreachable(Executor.TOOLRUNNER) from error
        told = f"The machine of the workspace was away for over {RETURN_S:g} s: {cause}."
        return failed(told, "UNREACHABLE", "Nothing was changed by this; call it again later.")


TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            "execute",
            execute.DESCRIPTION,
            execute.ExecuteInput,
            execute.execute,
            has_effect=True,
        ),
        Tool(
            "process_output",
            process_tools.OUTPUT_DESCRIPTION,
            process_tools.ProcessOutputInput,
            process_tools.process_output,
        ),
        Tool(
            "process_write",
            process_tools.WRITE_DESCRIPTION,
            process_tools.ProcessWriteInput,
            process_tools.process_write,
            has_effect=True,
        ),
        Tool(
            "process_list",
            process_tools.LIST_DESCRIPTION,
            process_tools.ProcessListInput,
            process_tools.process_list,
        ),
        Tool(
            "process_signal",
            process_tools.SIGNAL_DESCRIPTION,
            process_tools.ProcessSignalInput,
            process_tools.process_signal,
            has_effect=True,
        ),
        Tool("read_file", reading.DESCRIPTION, reading.ReadFileInput, reading.read_file),
        Tool(
            "write_file",
            changing.WRITE_DESCRIPTION,
            changing.WriteFileInput,
            changing.write_file,
            has_effect=True,
        ),
        Tool(
            "edit_files",
            changing.EDIT_DESCRIPTION,
            changing.EditFilesInput,
            changing.edit_files,
            has_effect=True,
            edit_style=EditStyle.REPLACEMENT,
        ),
        Tool(
            "apply_patch",
            changing.PATCH_DESCRIPTION,
            changing.ApplyPatchInput,
            changing.apply_patch,
            has_effect=True,
            edit_style=EditStyle.PATCH,
        ),
        Tool(
            "undo_edit",
            changing.UNDO_DESCRIPTION,
            changing.UndoEditInput,
            changing.undo_edit,
            has_effect=True,
        ),
        Tool("list_files", finding.LIST_DESCRIPTION, finding.ListFilesInput, finding.list_files),
        Tool("find_files", finding.FIND_DESCRIPTION, finding.FindFilesInput, finding.find_files),
        Tool(
            "search_files",
            finding.SEARCH_DESCRIPTION,
            finding.SearchFilesInput,
            finding.search_files,
        ),
        Tool(
            "attach_file", attaching.DESCRIPTION, attaching.AttachFileInput, attaching.attach_file
        ),
    )
}

#: What may be called in the modes that change nothing; a root may also attach files.
READING: Final = frozenset(
    {"execute", "find_files", "list_files", "process_output", "read_file", "search_files"}
)
READ_ONLY_NOTE: Final = (
    " In this mode it can change nothing: files, the home directory and what git has are read-only,"
    " and temporary files vanish with the command."
)


def offered(specs: tuple[ToolSpec, ...], context: TurnContext) -> tuple[ToolSpec, ...]:
    """Return the tools that the mode of a turn allows, of all tools of a workspace."""
    if context.mode is ChatMode.ORDINARY:
        return specs
    names = READING if context.is_child else READING | {"attach_file"}
    return tuple(
        replace(spec, description=spec.description + READ_ONLY_NOTE)
        if spec.name == "execute"
        else spec
        for spec in specs
        if spec.name in names
    )
