"""The values of processes and executions, as the rest of the service passes them around."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType, Protocol

from toolrunner.sandbox import Network, Profile

WorkspaceId = NewType("WorkspaceId", str)
ChatId = NewType("ChatId", str)
ProcessId = NewType("ProcessId", str)
ExecutionId = NewType("ExecutionId", str)

#: Of a call that a person makes: it belongs to no chat.
NO_CHAT = ChatId("")
#: What command lines are given to.
SHELL = "sh"

SIGNAL_BASE = 128


class ProcessState(StrEnum):
    """Where a process is in its life; names are those of the proto."""

    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    START_FAILED = "start_failed"
    LOST = "lost"


#: A process in one of these is counted, waited for and signalled.
LIVE = frozenset({ProcessState.STARTING, ProcessState.RUNNING})


class LostReason(StrEnum):
    """Why nothing more is known of a process; names are those of the proto."""

    RUNNER_RESTARTED = "runner_restarted"
    MACHINE_RESTARTED = "machine_restarted"
    START_UNCERTAIN = "start_uncertain"
    EXIT_UNREAD = "exit_unread"


class StdinMode(StrEnum):
    """What standard input is; names are those of the proto."""

    CLOSED = "closed"
    PIPE = "pipe"
    TERMINAL = "terminal"


class ExecutionState(StrEnum):
    """Where an execution is; names are those of the proto."""

    STARTED = "started"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Exit:
    """How the first process of a process ended."""

    exit_code: int | None  # None if a signal ended it.
    signal_number: int = 0
    is_timed_out: bool = False
    has_open_pipes: bool = False  # Someone it started still holds its output open.
    is_oom_killed: bool = False  # It, or one it started, was killed for want of memory.
    exceeded: str = ""  # The part of its workspace's quota that was passed, so that it was ended.

    @property
    def shell_exit_code(self) -> int:
        """The code as a shell reports it."""
        return SIGNAL_BASE + self.signal_number if self.exit_code is None else self.exit_code


#: Instead of the number of a placement: the node itself asks.
NODE_EPOCH = -1


class Placed(Protocol):
    """What happens in a workspace, on behalf of a chat or of nobody."""

    @property
    def workspace_id(self) -> WorkspaceId:
        """The workspace."""
        ...

    @property
    def chat_id(self) -> ChatId:
        """The chat; empty for nobody."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """The workspace a call is about, and the chat on whose behalf it is made.

    Attributes:
        workspace_id: The workspace.
        chat_id: The chat.
        epoch: Number of the workspace's placement; 0 if nobody placed it.
    """

    workspace_id: WorkspaceId
    chat_id: ChatId = NO_CHAT
    epoch: int = 0

    def may_see(self, record: Placed) -> bool:
        """Tell whether a process is this chat's or nobody's; a person sees all of them."""
        is_shown = not self.chat_id or record.chat_id in (NO_CHAT, self.chat_id)
        return record.workspace_id == self.workspace_id and is_shown


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """Size of a terminal."""

    rows: int = 24
    columns: int = 80


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may use; 0 for no limit.

    The share of the processor and the number of pids are kept for a process with all that it
    starts, by a control group, or not at all. Memory is kept so as well where there are groups, and
    for each process alone in any case. The others are of each process alone.
    """

    open_files: int = 0
    file_bytes: int = 0
    cpu_s: int = 0
    memory_bytes: int = 0
    pids: int = 0
    cpu_millicores: int = 0

    def narrowed(self, other: "Limits") -> "Limits":
        """Return the narrower one of each."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return Limits(
            *(min(mine, theirs) if mine and theirs else mine or theirs for mine, theirs in pairs)
        )

    @property
    def given(self) -> tuple[str, ...]:
        """The names of those there are."""
        return tuple(name for name in self.__slots__ if getattr(self, name))


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Quota:
    """What a workspace may use with all that runs in it; 0 for no bound.

    The kernel keeps it where there are control groups; what it does not keep, the node looks at
    and ends who uses too much.
    """

    memory_bytes: int = 0
    disk_bytes: int = 0
    inodes: int = 0
    pids: int = 0
    cpu_millicores: int = 0
    output_bytes: int = 0  # Of each process.

    def filled(self, other: "Quota") -> "Quota":
        """Return this with another's bounds where it has none."""
        names = self.__slots__
        return Quota(*(getattr(self, name) or getattr(other, name) for name in names))

    @property
    def limits(self) -> Limits:
        """What one process may use at most, if all of it were its own."""
        return Limits(
            file_bytes=self.disk_bytes,
            memory_bytes=self.memory_bytes,
            pids=self.pids,
            cpu_millicores=self.cpu_millicores,
        )


NO_QUOTA = Quota()


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What to run and how."""

    argv: tuple[str, ...]
    command: str  # The same as one text, for people.
    workdir: str
    environment: Mapping[str, str]
    is_background: bool
    timeout_s: float  # 0 for no limit.
    log_bytes_max: int
    stdin_mode: StdinMode = StdinMode.CLOSED
    stdin: bytes = b""  # What it begins with; with closed input, all of it.
    terminal: TerminalSize = TerminalSize()  # Of a process whose input is one.
    profile: Profile | None = None  # What it may write; None for as little as can be kept.
    network: Network | None = None  # What it may reach; None for as little as can be kept.
    limits: Limits = UNLIMITED  # What the caller asks for, beside those of the node.


@dataclass(frozen=True, slots=True)
class Key:
    """Names an effect and the owner who asks for it."""

    execution_id: ExecutionId
    chat_id: ChatId
    owner_epoch: int
    journal_generation: str


@dataclass(frozen=True, slots=True)
class Execution:
    """An entry of the journal."""

    request_id: str
    chat_id: ChatId
    method: str
    body_hash: bytes
    state: ExecutionState
    process_id: ProcessId | None
    response: bytes
    started_at: datetime
    finished_at: datetime | None
