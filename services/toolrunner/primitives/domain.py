"""Ids, scopes, limits and exits that all slices use."""

from dataclasses import dataclass
from typing import NewType, Protocol

WorkspaceId = NewType("WorkspaceId", str)
ChatId = NewType("ChatId", str)
ProcessId = NewType("ProcessId", str)
ExecutionId = NewType("ExecutionId", str)

#: For a call of a user: it belongs to no chat.
NO_CHAT = ChatId("")
NO_WORKSPACE = WorkspaceId("")

SIGNAL_BASE = 128


@dataclass(frozen=True, slots=True)
class Exit:
    """How the leader of a process ended."""

    exit_code: int | None  # None if a signal ended it.
    signal_number: int = 0
    is_timed_out: bool = False
    has_open_pipes: bool = False  # A descendant still has its output open.
    is_oom_killed: bool = False  # It, or a descendant, was killed by the OOM killer.
    exceeded: str = ""  # The exceeded part of its workspace's quota, for which it was ended.

    @property
    def shell_exit_code(self) -> int:
        """The code as a shell reports it."""
        return SIGNAL_BASE + self.signal_number if self.exit_code is None else self.exit_code


#: Instead of a placement epoch: for calls of the node itself.
NODE_EPOCH = -1


class Placed(Protocol):
    """An object in a workspace that belongs to a chat or to none."""

    @property
    def workspace_id(self) -> WorkspaceId:
        """The workspace."""
        ...

    @property
    def chat_id(self) -> ChatId:
        """The chat; empty for none."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """The workspace a call is about, and the chat on whose behalf it is made.

    Attributes:
        workspace_id: The workspace.
        chat_id: The chat.
        epoch: Number of the workspace's placement; 0 if it was not placed.
        turn_id: The message that started the turn of the chat; 0 outside of turns.
        may_write: Whether the call may change something in the workspace.
    """

    workspace_id: WorkspaceId
    chat_id: ChatId = NO_CHAT
    epoch: int = 0
    turn_id: int = 0
    may_write: bool = True

    def may_see(self, record: Placed) -> bool:
        """Return whether a process belongs to this chat or to none; a user sees all of them."""
        is_shown = not self.chat_id or record.chat_id in (NO_CHAT, self.chat_id)
        return record.workspace_id == self.workspace_id and is_shown


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a process; 0 for no limit.

    CPU share and number of pids apply to a process with its descendants, by a control group, or not
    at all. Memory is limited so as well where there are groups, and for each process alone in any
    case. The others apply to each process alone.
    """

    open_files: int = 0
    file_bytes: int = 0
    cpu_s: int = 0
    memory_bytes: int = 0
    pids: int = 0
    cpu_millicores: int = 0

    def narrowed(self, other: "Limits") -> "Limits":
        """Return the lower one of each limit."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return Limits(
            *(min(mine, theirs) if mine and theirs else mine or theirs for mine, theirs in pairs)
        )

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the limits that are set."""
        return tuple(name for name in self.__slots__ if getattr(self, name))


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of a workspace with all its processes; 0 for no limit.

    The kernel enforces it where there are control groups; the rest is checked by the node, which
    ends processes that use too much.
    """

    memory_bytes: int = 0
    disk_bytes: int = 0
    inodes: int = 0
    pids: int = 0
    cpu_millicores: int = 0
    output_bytes: int = 0  # Of each process.

    def filled(self, other: "Quota") -> "Quota":
        """Return this with another's values where it has none."""
        names = self.__slots__
        return Quota(*(getattr(self, name) or getattr(other, name) for name in names))

    @property
    def limits(self) -> Limits:
        """The limits of a single process that follow from the quota."""
        return Limits(
            file_bytes=self.disk_bytes,
            memory_bytes=self.memory_bytes,
            pids=self.pids,
            cpu_millicores=self.cpu_millicores,
        )


NO_QUOTA = Quota()
