"""Tools as values: what is offered to a model, what it calls, what comes back."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from chatd.content.domain.edit_format import EditStyle
from chatd.content.domain.parts import File, ToolCall, ToolOutcome
from chatd.content.domain.truncation import BUDGET_BYTES_UNKNOWN
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner

#: Tools that Parley offers itself; a client's tool has another name. A test compares it with them.
BUILT_IN_TOOL_NAMES = frozenset(
    {
        "apply_patch",
        "attach_file",
        "create_workspace",
        "edit_files",
        "execute",
        "find_files",
        "list_files",
        "list_templates",
        "process_list",
        "process_output",
        "process_signal",
        "process_write",
        "read_file",
        "read_template",
        "search_files",
        "start_workspace",
        "stop_workspace",
        "write_file",
    }
)


class Executor(StrEnum):
    """Who executes a tool."""

    TOOLRUNNER = "toolrunner"
    MCPGATEWAY = "mcpgateway"
    CHATD = "chatd"  # Itself.
    CLIENT = "client"  # Somebody outside, who is asked and answers later.


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it, and who executes it."""

    name: str
    description: str
    input_schema_json: str
    executor: Executor
    journal_generation: str = ""  # Journal that calls of it will be written to.
    server_id: str = ""  # MCP server that offers it.
    original_name: str = ""  # Name that server knows it by.
    digest: str = ""  # What the definition was when it was offered.
    is_serial: bool = False  # Runs after its siblings, one at a time.
    is_exclusive: bool = False  # Must be the only call of its batch.
    ends_turn: bool = False  # The turn is over once it succeeded.
    edit_style: EditStyle | None = None  # Models it is for; None for all.
    moves_tools: bool = False  # After it the other tools may work elsewhere: offer them anew.


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A tool call on its way to its executor.

    The execution id is ours and derived, because providers may reuse their call ids.
    """

    execution_id: ExecutionId
    call: ToolCall
    executor: Executor
    journal_generation: (
        str  # Journal of the executor at dispatch; only there is "never seen" proof.
    )


@dataclass(frozen=True, slots=True)
class StoredExecution:
    """A dispatched call as it is stored; its arguments are in the message with the call."""

    execution_id: ExecutionId
    tool_call_id: str
    tool_name: str
    executor: Executor
    journal_generation: str
    owner_epoch: int  # Owner that dispatched it.


@dataclass(frozen=True, slots=True)
class Execution:
    """A dispatched call together with whose it is and which owner sent it."""

    chat_id: ChatId
    owner: Owner
    owner_epoch: int
    dispatch: Dispatch
    spec: ToolSpec
    budget_bytes: int = BUDGET_BYTES_UNKNOWN  # How large its result may be.


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an executor says of a call."""

    outcome: ToolOutcome
    result_json: str
    files: tuple[File, ...] = ()  # That it handed to the people in the chat.


UNKNOWN_OUTCOME = Outcome(
    ToolOutcome.UNKNOWN,
    json.dumps(
        {
            "ok": False,
            "error": "The service was interrupted: this call may or may not have taken effect.",
            "reason": "UNKNOWN_OUTCOME",
            "hint": "Check before you repeat it.",
        }
    ),
)


@dataclass(frozen=True, slots=True)
class NeverSeen:
    """The journal that the call was dispatched to does not know it, so it did not start."""


@dataclass(frozen=True, slots=True)
class StillRunning:
    """The call runs; executing it again attaches to it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The call is over."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Untraceable:
    """Nobody can tell any more, for example because the journal was made anew."""


Found = NeverSeen | StillRunning | Ended | Untraceable


class ExecutorUnreachable(Exception):
    """An executor could not be asked; whether the call arrived is not known."""

    def __init__(self, executor: Executor) -> None:
        super().__init__(f"{executor} cannot be reached; ask again later")
        self.executor = executor


class Tools(Protocol):
    """Tools that somebody executes."""

    async def list_tools(self, chat_id: ChatId, owner: Owner) -> tuple[ToolSpec, ...]:
        """Return the tools a chat of `owner` may use now."""
        ...

    async def execute(self, execution: Execution) -> Outcome:
        """Have a dispatched call executed, at most once, and return what became of it.

        A call that started already is attached to. Cancelling the wait leaves the call alone.

        Raises:
            ExecutorUnreachable: whether the call arrived is not known; `find` may tell later.
        """
        ...

    async def find(self, execution: Execution) -> Found:
        """Return what the executor's journal knows of a dispatched call.

        Raises:
            ExecutorUnreachable: nobody could be asked.
        """
        ...

    async def cancel(self, execution: Execution) -> None:
        """Have a call stopped; one that never arrived must not start any more.

        Raises:
            ExecutorUnreachable: nobody could be told.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that the client executes itself."""

    name: str
    description: str
    input_schema_json: str
