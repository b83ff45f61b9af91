"""Tools as values: what is offered to a model, what it calls, what comes back."""

from dataclasses import dataclass
from enum import StrEnum

from chatd.domain.chat import ChatId, ExecutionId, Owner
from chatd.domain.parts import ToolCall, ToolOutcome


class Executor(StrEnum):
    """The service that executes a tool."""

    TOOLRUNNER = "toolrunner"
    MCPGATEWAY = "mcpgateway"


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
class Execution:
    """A dispatched call together with whose it is and which owner sent it."""

    chat_id: ChatId
    owner: Owner
    owner_epoch: int
    dispatch: Dispatch
    spec: ToolSpec


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an executor says of a call."""

    outcome: ToolOutcome
    result_json: str
