"""The journal's records of processes, and of requests that change something."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import msgspec

from toolrunner.primitives.domain import (
    ChatId,
    Exit,
    Key,
    LostReason,
    ProcessId,
    ProcessState,
    StdinMode,
    WorkspaceId,
)
from toolrunner.sandbox import Used


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


@dataclass(frozen=True, slots=True)
class Effect:
    """A request that changes something, for the journal.

    Attributes:
        request_id: The execution id if there is a key.
        key: Absent for requests of a user.
        method: The full name of the method.
        body_hash: Tells whether two requests with one id are the same request.
        encode: Encodes a process as the method's serialised response.
    """

    request_id: str
    key: Key | None
    method: str
    body_hash: bytes
    encode: Callable[[ProcessRecord], bytes]


@dataclass(frozen=True, slots=True)
class FileEffect:
    """A request that changes files, for the journal; the fields are those of `Effect`."""

    request_id: str
    key: Key | None
    method: str
    body_hash: bytes


#: A request with an entry in the journal.
Journaled = Effect | FileEffect
