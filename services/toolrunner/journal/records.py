"""The journal's records of processes and executions, and requests that change something."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from toolrunner.primitives.domain import (
    NO_WORKSPACE,
    ChatId,
    ExecutionId,
    Exit,
    ProcessId,
    WorkspaceId,
)
from toolrunner.sandbox import Used


class ProcessState(StrEnum):
    """The state of a process; names are those of the proto."""

    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    START_FAILED = "start_failed"
    LOST = "lost"


#: A process in one of these is counted, waited for and signalled.
LIVE = frozenset({ProcessState.STARTING, ProcessState.RUNNING})


class LostReason(StrEnum):
    """Why a process is lost; names are those of the proto."""

    RUNNER_RESTARTED = "runner_restarted"
    MACHINE_RESTARTED = "machine_restarted"
    START_UNCERTAIN = "start_uncertain"
    EXIT_UNREAD = "exit_unread"


class StdinMode(StrEnum):
    """The kind of standard input; names are those of the proto."""

    CLOSED = "closed"
    PIPE = "pipe"
    TERMINAL = "terminal"


class ExecutionState(StrEnum):
    """The state of an execution; names are those of the proto."""

    STARTED = "started"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    ACKNOWLEDGED = "acknowledged"


@dataclass(frozen=True, slots=True)
class Key:
    """Identifies an effect and the chat owner that requests it.

    Attributes:
        workspace_id: The workspace of the effect; empty if the request does not contain it.
    """

    execution_id: ExecutionId
    chat_id: ChatId
    owner_epoch: int
    journal_generation: str
    workspace_id: WorkspaceId = NO_WORKSPACE


@dataclass(frozen=True, slots=True)
class Execution:
    """An entry of the journal, or what a tombstone tells: the id, and that it was acknowledged."""

    request_id: str
    chat_id: ChatId
    method: str
    body_hash: bytes
    state: ExecutionState
    process_id: ProcessId | None
    response: bytes
    started_at: datetime | None  # None for a tombstone.
    finished_at: datetime | None


class ProcessRecord(msgspec.Struct, frozen=True):
    """The record of a process, in memory and in the journal.

    A msgspec struct for speed, because every command makes a dozen of them, each from the one
    before.
    """

    process_id: ProcessId
    workspace_id: WorkspaceId
    chat_id: ChatId
    request_id: str
    command: str
    workdir: str
    is_background: bool
    state: ProcessState
    started_at: datetime
    pid: int = 0
    exit: Exit | None = None
    start_error: str = ""
    lost_reason: LostReason | None = None
    stdin_mode: StdinMode = StdinMode.CLOSED
    timeout_s: float = 0.0  # 0 for no limit.
    log_bytes_max: int = 0
    output_bytes: int = 0
    log_start_bytes: int = 0
    log_path: str = ""  # Relative to the workspace's files; empty for none.
    ended_at: datetime | None = None
    wall_duration_ms: int = 0
    sandbox: Used | None = None  # None before it runs.
    needs_owner: bool = False  # It ends with the attachment that owns it.


@dataclass(frozen=True, slots=True)
class Effect:
    """A request that changes something, for the journal.

    Attributes:
        request_id: The execution id if there is a key.
        key: Absent for requests of a user.
        method: The full name of the method.
        body_hash: Tells whether two requests with one id are the same request.
        encode: Encodes a process as the method's serialised response.
        workspace_id: The workspace that it changes, with whose removal the entry is deleted.
    """

    request_id: str
    key: Key | None
    method: str
    body_hash: bytes
    encode: Callable[[ProcessRecord], bytes]
    workspace_id: WorkspaceId


@dataclass(frozen=True, slots=True)
class FileEffect:
    """A request that changes files, for the journal; the fields are those of `Effect`."""

    request_id: str
    key: Key | None
    method: str
    body_hash: bytes
    workspace_id: WorkspaceId


#: A request with an entry in the journal.
Journaled = Effect | FileEffect
