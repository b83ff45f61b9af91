"""Value types of tools: specifications, calls, dispatches and outcomes."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import File, ReachedHosts, ToolCall, ToolOutcome
from chatd.content.domain.truncation import BUDGET_BYTES_UNKNOWN
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner, OwnerClaim

# GPT-5 models and coding models, with any prefix or date that a gateway adds to their names.
_PATCHERS: Final = re.compile(r"(?:^|[/.:])(?:gpt-5(?:$|[.\-@:])|(?:[\w.]+-)*codex(?:$|[.\-@:]))")
FIND_TOOLS: Final = "find_tools"
AGENT_PROCESSES: Final = "agent_processes"
APPLY_CHILD_CHANGES: Final = "apply_child_changes"
LIST_AGENTS: Final = "list_agents"
LIST_SUBAGENT_MODELS: Final = "list_subagent_models"
MONITOR_PROCESS: Final = "monitor_process"
SPAWN_AGENT: Final = "spawn_agent"
WAIT_AGENTS: Final = "wait_agents"
#: Built-in tools; a client's tool must have another name. A test compares it with the tools.
BUILT_IN_TOOL_NAMES = frozenset(
    {
        "advisor",
        AGENT_PROCESSES,
        APPLY_CHILD_CHANGES,
        "apply_patch",
        "attach_file",
        "create_workspace",
        "edit_files",
        "execute",
        "find_files",
        FIND_TOOLS,
        "interrupt_agent",
        LIST_AGENTS,
        "list_files",
        LIST_SUBAGENT_MODELS,
        "list_templates",
        "message_agent",
        MONITOR_PROCESS,
        "process_list",
        "process_output",
        "process_signal",
        "process_write",
        "read_file",
        "read_skill",
        "read_skill_file",
        "read_template",
        "search_files",
        SPAWN_AGENT,
        "start_workspace",
        "stop_workspace",
        "todo",
        "undo_edit",
        WAIT_AGENTS,
        "write_file",
    }
)
#: Tools by which a model asks people; a client's tool must have another name than these, too.
PROPOSE_PLAN = "propose_plan"
ASK_USER_QUESTION = "ask_user_question"


class EditStyle(StrEnum):
    """A format in which a model edits files."""

    REPLACEMENT = "replacement"  # Old text and new text.
    PATCH = "patch"  # One text with the changes of all files.


def edit_style_of(model_name: str) -> EditStyle:
    """Return the edit style of a model by its name at the provider."""
    is_patcher = _PATCHERS.search(model_name.strip().lower()) is not None
    return EditStyle.PATCH if is_patcher else EditStyle.REPLACEMENT


class PendingKind(StrEnum):
    """What an open call waits for: its executor, a client, or the answer of a person."""

    DISPATCHED = "dispatched"
    CLIENT = "client"  # The client executes it and submits the result.
    QUESTION = "question"
    PLAN = "plan"
    APPROVAL = "approval"  # It is dispatched if a person allows it.
    LOOP = "loop"  # The same, because it was repeated with the same result.
    LOGIN = "login"  # It runs, and waits until a person has signed in to its server.
    ELICITATION = "elicitation"  # It runs, and waits for what it asks a person.
    AGENTS = "agents"  # It runs, and waits until other agents have ended.


#: Kinds of calls that are dispatched, and wait at their executor for an answer or for agents.
SUSPENDED = frozenset({PendingKind.LOGIN, PendingKind.ELICITATION, PendingKind.AGENTS})


class Executor(StrEnum):
    """The component that executes a tool."""

    TOOLRUNNER = "toolrunner"
    MCPGATEWAY = "mcpgateway"
    CHATD = "chatd"  # This service.
    CLIENT = "client"  # The client, which receives the call and sends the result later.
    PERSON = "person"  # No executor: a person answers.


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to the model, and its executor."""

    name: str
    description: str
    input_schema_json: str
    executor: Executor
    journal_generation: str = ""  # Journal in which its calls will be recorded.
    server_id: str = ""  # MCP server that offers it.
    original_name: str = ""  # The tool's name at that server.
    digest: str = ""  # Digest of the definition that was offered.
    is_serial: bool = False  # Runs after its siblings, one at a time.
    is_exclusive: bool = False  # Must be the only call of its batch.
    ends_turn: bool = False  # The turn ends after it succeeded.
    edit_style: EditStyle | None = None  # Edit style of its models; None for all.
    needs_approval: bool = False  # The policy of its MCP server asks before each call.
    is_read_only: bool = False  # An administrator trusts its MCP server, which calls it read-only.
    moves_tools: bool = False  # Other tools may run elsewhere afterwards: list them again.
    asks: PendingKind | None = None  # What its calls wait for, if a person answers them.


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A tool call that is sent to its executor.

    The execution id is derived by chatd, because providers may reuse their call ids.

    Attributes:
        journal_generation: The executor's journal at dispatch; "never seen" is proof only there.
        mode: The mode of the turn that made it; a new owner keeps it.
        arguments_digest: The digest of tool, server and arguments; with others it never starts.
    """

    execution_id: ExecutionId
    call: ToolCall
    executor: Executor
    journal_generation: str
    mode: ChatMode = ChatMode.ORDINARY
    arguments_digest: str = ""


@dataclass(frozen=True, slots=True)
class StoredExecution:
    """A dispatched call as stored; its arguments are in the message that contains the call."""

    execution_id: ExecutionId
    tool_call_id: str
    tool_name: str
    executor: Executor
    journal_generation: str
    owner_epoch: int  # Epoch of the owner that dispatched it.
    mode: ChatMode
    arguments_digest: str = ""  # Empty if an older version dispatched it.


class InputAction(StrEnum):
    """What a person decided about what a running call asks."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"  # Nobody answered in time, or nobody can.


@dataclass(frozen=True, slots=True)
class InputAnswer:
    """The answer to what a running call asks.

    Attributes:
        request_id: The executor's id of what was asked.
        content_json: The content of an accepted form; empty for none.
    """

    request_id: str
    action: InputAction
    content_json: str = ""


@dataclass(frozen=True, slots=True)
class InputRequired:
    """What a running call asks a person; it waits at its executor for the answer.

    Attributes:
        request_id: The executor's id of what is asked, unique within the call.
        kind: One of `SUSPENDED`.
        message: What is asked, for the person to read.
        schema_json: The JSON schema of the answer's content; empty if none is needed.
        url: An address for the person to open; empty for none.
        expires_s: How long the call waits; None if that is not known.
        agent_ids: The chats that the call waits for, if it waits for agents.
        is_any: Whether it waits for the first of them only.
    """

    request_id: str
    kind: PendingKind
    message: str
    schema_json: str = ""
    url: str = ""
    expires_s: float | None = None
    agent_ids: tuple[str, ...] = ()
    is_any: bool = False


@dataclass(frozen=True, slots=True)
class Execution:
    """A dispatched call in its turn, with the epoch of the owner that sent it.

    Attributes:
        budget_bytes: The size limit of its result.
        answer: The answer that the call waits for. It runs already: it is never started with one.
    """

    context: TurnContext
    owner_epoch: int
    dispatch: Dispatch
    spec: ToolSpec
    budget_bytes: int = BUDGET_BYTES_UNKNOWN
    answer: InputAnswer | None = None

    @property
    def chat_id(self) -> ChatId:
        """The chat of the turn."""
        return self.context.chat_id

    @property
    def owner(self) -> Owner:
        """The user whose credentials the turn uses."""
        return self.context.owner

    @property
    def claim(self) -> OwnerClaim:
        """The claim under which the call was sent: a tool of chatd acts only while it holds."""
        return OwnerClaim(self.chat_id, self.owner_epoch, MessageId(self.context.turn_id))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call as the executor returns it."""

    outcome: ToolOutcome
    result_json: str
    files: tuple[File, ...] = ()  # Files that it shows to the users of the chat.
    reached: ReachedHosts | None = None  # What its workspace had reached by then.


REPEAT_HINT = "Check before you repeat it."
UNKNOWN_OUTCOME = Outcome(
    ToolOutcome.UNKNOWN,
    json.dumps(
        {
            "ok": False,
            "error": "The service was interrupted: this call may or may not have taken effect.",
            "reason": "UNKNOWN_OUTCOME",
            "hint": REPEAT_HINT,
        }
    ),
)


@dataclass(frozen=True, slots=True)
class NeverSeen:
    """The journal that the call was dispatched to has no entry for it, so it did not start."""


@dataclass(frozen=True, slots=True)
class StillRunning:
    """The call runs; executing it again attaches to it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The call has ended."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Untraceable:
    """The outcome cannot be determined, for example because the journal was recreated."""


Found = NeverSeen | StillRunning | InputRequired | Ended | Untraceable


class ExecutorUnreachable(Exception):
    """An executor could not be reached; whether the call arrived is unknown."""

    def __init__(self, executor: Executor) -> None:
        super().__init__(f"{executor} cannot be reached; ask again later")
        self.executor = executor


class Tools(Protocol):
    """A source of tools, with their execution."""

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools that a turn may use."""
        ...

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Execute a dispatched call at most once and return its outcome, or what it asks.

        If the call has already started, attach to it. Cancelling the wait does not cancel the call.
        A call that asks something goes on when it is executed again with the answer; if it cannot
        go on, because it is lost at the executor, its outcome is unknown.

        Raises:
            ExecutorUnreachable: whether the call arrived is unknown; `find` may return it later.
        """
        ...

    async def find(self, execution: Execution) -> Found:
        """Return the state of a dispatched call in the executor's journal.

        Raises:
            ExecutorUnreachable: no executor could be reached.
        """
        ...

    async def cancel(self, execution: Execution) -> None:
        """Cancel a call; a call that has not arrived yet must not start afterwards.

        Raises:
            ExecutorUnreachable: no executor could be reached.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that the client executes itself."""

    name: str
    description: str
    input_schema_json: str
