"""Tool calls: their key, request, state and end, and the port that makes them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from mcpgateway.client.content import Part, ToolAnswer
from mcpgateway.client.questions import Ask, Question
from mcpgateway.servers.domain import Catalogue, Reason, ServerId, Target


class Outcome(StrEnum):
    """How a call ended."""

    SUCCEEDED = "succeeded"
    TOOL_ERROR = "tool_error"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identifies a call and the owner that asks for it.

    Attributes:
        execution_id: Chosen by the caller, unique in the journal.
        caller: The service, or the service token, that the call belongs to.
        chat_id: Its chat; empty for a service token.
        owner_epoch: The epoch of the chat's owner; 0 for a service token.
    """

    execution_id: str
    caller: str
    chat_id: str
    owner_epoch: int


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call to be made.

    Attributes:
        key: The key of the call.
        server_id: The server.
        user_id: The user; empty when a service calls for itself.
        tool: The server's own name of the tool.
        arguments_json: A JSON object.
        idle_s: How long the tool may be silent.
        limit_s: How long it may take.
    """

    key: CallKey
    server_id: ServerId
    user_id: str
    tool: str
    arguments_json: bytes = field(repr=False)
    idle_s: float
    limit_s: float

    @property
    def sha256(self) -> bytes:
        """Return the hash of the content, which must be the same for the same execution id."""
        parts = (self.server_id.encode(), self.tool.encode(), self.arguments_json)
        return hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in parts)).digest()


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a tool, in its own unit."""

    progress: float
    total: float | None
    message: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a call, without the journal's timestamp.

    Attributes:
        outcome: The outcome.
        parts: The content of the result.
        reason: Why it did not succeed; None when the tool itself responded.
        message: The same as text, without secrets.
        may_have_executed: False if it certainly was not executed.
        retry_after_ms: When a retry makes sense; 0 if unknown.
        original_bytes: Bytes of all parts before truncation.
    """

    outcome: Outcome
    parts: tuple[Part, ...] = ()
    reason: Reason | None = None
    message: str = ""
    may_have_executed: bool = True
    retry_after_ms: int = 0
    original_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call as stored in the journal.

    Attributes:
        key: The key it was journaled with.
        sha256: Its content; None when it was cancelled before it was requested.
        started_at: When it was journaled; None for a tombstone, of which only the key is known.
        finished_at: When it ended; None while it runs.
        end: How it ended, without parts once acknowledged; None while it runs.
        is_acknowledged: Whether its parts were dropped.
        question: What it asks, without an answer yet; None if it waits for nothing.
    """

    key: CallKey
    sha256: bytes | None
    started_at: datetime | None
    finished_at: datetime | None
    end: CallEnd | None
    is_acknowledged: bool
    question: Question | None = None


OnProgress = Callable[[Progress], None]


class Upstream(Protocol):
    """The operations on MCP servers that the service uses."""

    async def list_tools(self, target: Target) -> Catalogue:
        """Return the server's tools, within its connect timeout.

        Raises:
            UpstreamFailed: It does not respond, or its response is invalid.
        """
        ...

    async def call_tool(
        self, target: Target, tool: str, arguments_json: bytes, on_progress: OnProgress, ask: Ask
    ) -> ToolAnswer:
        """Call a tool once and return its answer; on cancellation the server is notified.

        Args:
            target: The server.
            tool: The server's own name of the tool.
            arguments_json: A JSON object.
            on_progress: Is called with the progress of the tool.
            ask: Asks a person what the tool wants to know.

        Raises:
            UpstreamFailed: The tool did not respond; the error contains whether it may have run.
        """
        ...
