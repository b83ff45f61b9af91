"""Errors of toolrunner.

ToolrunnerError
├── InvalidRequest          a field is outside its limits
├── ProcessNotFound         no such process in this workspace, or none that this chat may see
├── ProcessNotRunning       it ended before the signal or the input
├── NotAttachable           it has no input, or no terminal
├── InputFull               it has not read the earlier input
├── OutputGone              the log no longer has the requested output
├── InvalidPattern          a regular expression cannot be parsed
├── BadTicket               the ticket for a terminal is not valid
├── TooManyProcesses        a limit on concurrent processes is reached
├── OutsideWorkspace        a path leads out of the workspace
├── PathNotFound            there is no such path
├── WrongPathKind           the path is not a directory
├── SandboxTooWeak          a call requires more confinement than this node has
├── StaleOwner              a newer owner of the chat has called
├── JournalChanged          the journal is not the one that was named
├── ExecutionIdReused       the execution id names another call
├── RequestIdReused         the request id names another call
├── JournalFailed           an entry cannot be written to disk
├── ReadOnly                the profile of the call forbids writing
├── ExecutionCancelled      the execution was cancelled before it could begin
├── FileWorkerGone          the file worker exited, and nothing was changed
├── OutcomeUnknown          it is unknown whether the change was made
├── StalePlacement          the workspace has a newer placement
├── WorkspaceNotFound       there is no such workspace on this node
├── WorkspaceNotReady       the workspace is in the wrong state
├── QuotaExceeded           the workspace exceeds its quota
├── NodeFull                the node is at capacity
├── NodeDraining            the node accepts no more workspaces, because it is draining
├── ForkNotPossible         the workspace cannot be forked this way
├── NotAFork                the workspace is not a fork of the other one
├── MergeInterrupted        the parent changed during the merge
└── SpawnerGone             the spawner exited

ConfigurationError
└── JournalUnusable         the journal cannot be read, or another process has it
"""

from pathlib import Path

from parley.settings import ConfigurationError


class ToolrunnerError(Exception):
    """The base of the errors of toolrunner."""


class InvalidRequest(ToolrunnerError):
    """A field is outside its limits.

    Attributes:
        field: Path of the field, as in the proto.
        problem: What is wrong, and what is valid.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class ProcessNotFound(ToolrunnerError):
    """There is no such process for this chat."""

    def __init__(self, process_id: str) -> None:
        super().__init__("there is no such process in this workspace; list them to see their ids")
        self.process_id = process_id


class ProcessNotRunning(ToolrunnerError):
    """The process has ended already."""

    def __init__(self, process_id: str) -> None:
        super().__init__("the process is not running any more; read its output to see how it ended")
        self.process_id = process_id


class NotAttachable(ToolrunnerError):
    """The process has no input, or no terminal.

    Attributes:
        process_id: The process.
        wants: The option it would have to be started with, `stdin` or `tty`.
    """

    def __init__(self, process_id: str, wants: str) -> None:
        super().__init__(f"the process has no {wants} that is open; start one that has")
        self.process_id = process_id
        self.wants = wants


class InputFull(ToolrunnerError):
    """The process has not read the earlier input."""

    def __init__(self, waiting_bytes: int) -> None:
        super().__init__(
            f"the process has not read {waiting_bytes} bytes that were written before; "
            "write less at a time, or wait until it reads"
        )
        self.waiting_bytes = waiting_bytes


class OutputGone(ToolrunnerError):
    """The log no longer has the requested output."""

    def __init__(self, process_id: str, oldest_cursor: int) -> None:
        super().__init__(f"the output before {oldest_cursor} is gone; read from there on")
        self.process_id = process_id
        self.oldest_cursor = oldest_cursor


class InvalidPattern(ToolrunnerError):
    """A regular expression cannot be parsed."""

    def __init__(self, pattern: str, problem: str) -> None:
        super().__init__(f"the pattern cannot be read ({problem}); write it in the syntax of RE2")
        self.pattern = pattern
        self.problem = problem


class BadTicket(ToolrunnerError):
    """The ticket for a terminal is not valid."""

    def __init__(self) -> None:
        super().__init__("the ticket is wrong, used or expired; ask for a new one")


class TooManyProcesses(ToolrunnerError):
    """A limit on concurrent processes is reached.

    Attributes:
        scope: What the limit applies to, `workspace` or `chat`.
        limit: The limit.
    """

    def __init__(self, scope: str, limit: int) -> None:
        super().__init__(f"this {scope} has {limit} running processes already; end one first")
        self.scope = scope
        self.limit = limit


class OutsideWorkspace(ToolrunnerError):
    """A path leads out of the workspace."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} leads out of the workspace; name a path inside it")
        self.path = path


class PathNotFound(ToolrunnerError):
    """There is no such path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no {path!r} in the workspace; make it first")
        self.path = path


class WrongPathKind(ToolrunnerError):
    """A path is not a directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} is not a directory; name one")
        self.path = path


class SandboxTooWeak(ToolrunnerError):
    """A call requires more confinement than this node has."""

    def __init__(self, level: str, required: str, cause: str = "") -> None:
        super().__init__(
            f"the sandbox of this node has level {level} here and {required} is needed: {cause}"
            if cause
            else f"the sandbox of this node has level {level}, and the call asks for a confinement "
            f"that needs level {required}; ask a node with a stronger sandbox"
        )
        self.level = level
        self.required = required


class QuotaExceeded(ToolrunnerError):
    """The workspace exceeds its quota.

    Attributes:
        dimension: The exceeded part: `disk_bytes` or `inodes`.
        used: The usage.
        limit: The limit.
        is_partial: Whether some files could not be read, which counts as exceeding the quota.
    """

    def __init__(self, dimension: str, used: int, limit: int, *, is_partial: bool = False) -> None:
        super().__init__(
            "the node cannot look into all directories and open files of the workspace, which "
            "counts as more than it may use, so nothing can be written; make them readable with a "
            "command (chmod -R u+rwX .) or remove them, then write again"
            if is_partial
            else f"the workspace uses {used} of {limit} {dimension}, so nothing can be written; "
            "remove files that are not needed with a command (rm), then write again"
        )
        self.dimension = dimension
        self.used = used
        self.limit = limit
        self.is_partial = is_partial


class StaleOwner(ToolrunnerError):
    """A newer owner of the chat has called, or the same owner for a newer turn."""

    def __init__(self, owner_epoch: int, highest_epoch: int, newer: str = "owner") -> None:
        super().__init__(f"a newer {newer} of this chat has spoken; let go of the chat")
        self.owner_epoch = owner_epoch
        self.highest_epoch = highest_epoch


class JournalChanged(ToolrunnerError):
    """The journal is not the one that was named."""

    def __init__(self, generation: str) -> None:
        super().__init__("the journal is another one; what was dispatched to the old is unknown")
        self.generation = generation


class ExecutionIdReused(ToolrunnerError):
    """The execution id names another call."""

    def __init__(self, execution_id: str) -> None:
        super().__init__("this execution id was used for another call; derive it anew")
        self.execution_id = execution_id


class RequestIdReused(ToolrunnerError):
    """The request id names another call."""

    def __init__(self, request_id: str) -> None:
        super().__init__("this request id was used for another request; choose a new one")
        self.request_id = request_id


class JournalFailed(ToolrunnerError):
    """An entry of the journal cannot be written to disk."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the journal cannot be written ({cause}); make room on the node's disk")
        self.cause = cause


class ReadOnly(ToolrunnerError):
    """The profile of the call forbids writing."""

    def __init__(self, path: str) -> None:
        super().__init__("this call may only read; ask with a profile that may write")
        self.path = path


class ExecutionCancelled(ToolrunnerError):
    """The execution was cancelled before it could begin, and did nothing."""

    def __init__(self, request_id: str) -> None:
        super().__init__("it was cancelled before it could begin, and changed nothing")
        self.request_id = request_id


class FileWorkerGone(ToolrunnerError):
    """The file worker exited; nothing was changed.

    Attributes:
        cause: Why it exited.
        is_replaced: Whether another one has replaced it, and works.
    """

    def __init__(self, cause: str = "it ended", *, is_replaced: bool = False) -> None:
        super().__init__(f"the program that works on files is gone ({cause}); ask again")
        self.cause = cause
        self.is_replaced = is_replaced


class OutcomeUnknown(ToolrunnerError):
    """It is unknown whether the change was made."""

    def __init__(self, request_id: str) -> None:
        super().__init__(
            "whether the change was made is unknown; look at the files before going on"
        )
        self.request_id = request_id


class StalePlacement(ToolrunnerError):
    """The workspace has a newer placement than the caller knows of."""

    def __init__(self, workspace_id: str, epoch: int, highest_epoch: int) -> None:
        super().__init__("the workspace was placed anew; look where it is now")
        self.workspace_id = workspace_id
        self.epoch = epoch
        self.highest_epoch = highest_epoch


class WorkspaceNotFound(ToolrunnerError):
    """There is no such workspace on this node."""

    def __init__(self, workspace_id: str) -> None:
        super().__init__("there is no such workspace on this node; prepare it first")
        self.workspace_id = workspace_id


class WorkspaceNotReady(ToolrunnerError):
    """The workspace is in the wrong state.

    Attributes:
        workspace_id: The workspace.
        state: The state it is in.
        next_step: What to do about it.
    """

    def __init__(self, workspace_id: str, state: str, next_step: str) -> None:
        super().__init__(f"the workspace is {state}; {next_step.replace('_', ' ')} first")
        self.workspace_id = workspace_id
        self.state = state
        self.next_step = next_step


class NodeFull(ToolrunnerError):
    """The node is at capacity.

    Attributes:
        resource: The exhausted resource.
    """

    def __init__(self, resource: str) -> None:
        super().__init__(f"this node has no {resource} left; ask another one")
        self.resource = resource


class NodeDraining(ToolrunnerError):
    """The node accepts no more workspaces, because it is draining."""

    def __init__(self) -> None:
        super().__init__("this node is being emptied; ask another one")


class ForkNotPossible(ToolrunnerError):
    """The workspace cannot be forked this way."""

    def __init__(self, mode: str, cause: str) -> None:
        super().__init__(f"no fork can be made by {mode}: {cause}")
        self.mode = mode
        self.cause = cause


class NotAFork(ToolrunnerError):
    """The workspace is not a fork of the other one."""

    def __init__(self, workspace_id: str) -> None:
        super().__init__("the workspace is no fork of that parent; merge it where it comes from")
        self.workspace_id = workspace_id


class MergeInterrupted(ToolrunnerError):
    """The parent changed during the merge; it is as it was before."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} was changed meanwhile, so nothing was merged; merge again")
        self.path = path


class MergeUnfinished(ToolrunnerError):
    """A merge could neither be applied nor undone; its plan and the moved files are kept."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the merge stopped at {path!r} and could not be undone; no file is lost, and the next"
            " merge or start of the node completes it: check the disk space, then merge again"
        )
        self.path = path


class MergeSetAside(ToolrunnerError):
    """An earlier merge was damaged; the files that it had moved are in a directory for people."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"an earlier merge was cut off and its plan is damaged; the files that it had replaced"
            f" are in {path!r}/old now, those that it had not placed yet in {path!r}/new: put back"
            " what is missing, remove the directory, then merge again"
        )
        self.path = path


class SpawnerGone(ToolrunnerError):
    """The spawner exited, and so must this service."""

    def __init__(self) -> None:
        super().__init__("the program that starts processes ended; this service starts again")


class JournalUnusable(ConfigurationError):
    """The journal cannot be used; nothing was changed."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"the journal {path} cannot be used: {problem}")
        self.path = path
        self.problem = problem
