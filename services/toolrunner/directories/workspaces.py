"""The directories of workspaces, and the check whether a call may use one.

A workspace that was not placed by the registry is created at its first use. One that was removed is
never created again by a use: what still runs for it, such as the search for changes of a process
that ended with it, is refused.
"""

import errno
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from toolrunner.directories.restart_delays import RestartDelays
from toolrunner.directories.users import Users
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.tree import hand_over
from toolrunner.primitives.domain import NO_QUOTA, Quota, Scope, WorkspaceId
from toolrunner.primitives.errors import (
    OutsideWorkspace,
    PathNotFound,
    QuotaExceeded,
    WorkspaceNotFound,
    WrongPathKind,
)
from toolrunner.sandbox import Network, Profile
from toolrunner.spawner import mark_of_workspace, open_directory_beneath

PRIVATE: Final = 0o700
#: Other users may traverse it, not list it.
PASSABLE: Final = 0o711
#: The group may list it; new files get the group too.
READABLE: Final = 0o2750
#: So many are cached.
KNOWN_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class WorkspaceOptions:
    """Settings of one workspace.

    Attributes:
        files: The directory of its files, if it is not below its own directory.
        readable: Directories outside that its processes must be able to read.
        environment: Variables of its processes, which a call may override.
        profile: The maximum that its processes may write; None for that of the call.
        network: The maximum that they may reach, and the default of a call.
        quota: Its quota.
        owner_id: The user of Parley whose it is; empty if that is not known.
    """

    files: Path | None = None
    readable: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    profile: Profile | None = None
    network: Network | None = None
    quota: Quota = NO_QUOTA
    owner_id: str = ""


DEFAULT_OPTIONS: Final = WorkspaceOptions()


@dataclass(frozen=True, slots=True)
class Workspace:
    """The paths of a workspace.

    Attributes:
        root: The files.
        home: The home of its processes, so that their settings are not in the files.
        temporary: Temporary files.
        scratch: Temporary directories of processes that may only read, one for each.
        logs: The output of its processes.
        undo: The content of files before they were changed.
    """

    directory: Path
    options: WorkspaceOptions = DEFAULT_OPTIONS
    root: Path = field(init=False, repr=False, compare=False)
    home: Path = field(init=False, repr=False, compare=False)
    temporary: Path = field(init=False, repr=False, compare=False)
    scratch: Path = field(init=False, repr=False, compare=False)
    logs: Path = field(init=False, repr=False, compare=False)
    undo: Path = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Computed once, because every call needs them and constructing paths is slow.
        object.__setattr__(self, "root", self.options.files or self.directory / "files")
        object.__setattr__(self, "temporary", self.directory / "tmp")
        for name in ("home", "scratch", "logs", "undo"):
            object.__setattr__(self, name, self.directory / name)

    def relative(self, path: str) -> str:
        """Return a directory's path relative to the root, given relative or absolute inside of it.

        The kernel resolves it once more when the process starts, so a link that is created in
        between cannot lead out either.

        Raises:
            OutsideWorkspace: It leads out of the workspace.
            PathNotFound: There is no such path.
            WrongPathKind: It is not a directory.
        """
        given = PurePosixPath(path)
        if given.is_absolute():
            if not given.is_relative_to(self.root):
                raise OutsideWorkspace(path)
            given = given.relative_to(self.root)
        try:
            os.close(open_directory_beneath(str(self.root), str(given)))
        except OSError as error:
            match error.errno:
                case errno.ENOENT:
                    raise PathNotFound(path) from error
                case errno.ENOTDIR:
                    raise WrongPathKind(path) from error
                case errno.EXDEV | errno.ELOOP:
                    raise OutsideWorkspace(path) from error
                case _:
                    raise
        return str(given)


class Admission(Protocol):
    """Decides which workspaces may be used."""

    def check(self, scope: Scope, *, allow_not_ready: bool) -> None:
        """Check a call to a workspace; `allow_not_ready` for processes that may have ended.

        Raises:
            ToolrunnerError: The workspace is not here, not ready, or has a newer placement.
        """
        ...

    def is_removed(self, workspace_id: WorkspaceId) -> bool:
        """Return whether a workspace was removed or is being removed."""
        ...


class AllAdmitted:
    """Allows every call, for nodes whose workspaces are not placed by a registry."""

    def check(self, scope: Scope, *, allow_not_ready: bool) -> None:
        """Allow it."""

    def is_removed(self, workspace_id: WorkspaceId) -> bool:
        """Return that it is not."""
        return False


class ReadingGate(Protocol):
    """Prepares a workspace for calls of a chat that may only read."""

    async def pass_through(self, scope: Scope) -> None:
        """Return when nothing that was started for the chat before can write any more.

        Raises:
            ToolrunnerError: Something still can.
        """
        ...


class OpenGate:
    """Prepares nothing, for nodes without processes."""

    async def pass_through(self, scope: Scope) -> None:
        """Return at once."""


class UseCounter:
    """Counts the current uses of each workspace, of one kind."""

    def __init__(self) -> None:
        self._counts: Counter[WorkspaceId] = Counter()

    def __getitem__(self, workspace_id: WorkspaceId) -> int:
        return self._counts[workspace_id]

    @contextmanager
    def counted(self, workspace_id: WorkspaceId) -> Iterator[None]:
        """Count one more in a context."""
        self._counts[workspace_id] += 1
        try:
            yield
        finally:
            self._counts[workspace_id] -= 1
            if not self._counts[workspace_id]:
                del self._counts[workspace_id]


class Workspaces:
    """All workspaces below one directory.

    Args:
        directory: The directory.
        users: Allocates a user for each; None if they share that of the service.

    Attributes:
        waits: Calls that wait for a process of theirs.
        attachments: Attached terminals.
        admission: Decides which may be used.
        reading_gate: Prepares them for calls that may only read.
        options: Settings of single workspaces.
        quota: The default quota.
        overruns: Workspaces that exceed their disk quota.
        restart_delays: How long commands wait in workspaces that had too many processes.
    """

    def __init__(
        self, directory: Path, users: Users | None = None, quota: Quota = NO_QUOTA
    ) -> None:
        self.quota = quota
        self.overruns: dict[WorkspaceId, QuotaExceeded] = {}
        self.restart_delays = RestartDelays()
        self.admission: Admission = AllAdmitted()
        self.reading_gate: ReadingGate = OpenGate()
        self.options: dict[WorkspaceId, WorkspaceOptions] = {}
        self.waits = UseCounter()
        self.attachments = UseCounter()
        self._directory = directory
        self._users = users
        self._known: dict[WorkspaceId, Workspace] = {}

    def check(self, scope: Scope, *, allow_not_ready: bool = False) -> None:
        """Check a call to a workspace; `allow_not_ready` for processes that may have ended.

        Raises:
            ToolrunnerError: The workspace is not here, not ready, or has a newer placement.
        """
        self.admission.check(scope, allow_not_ready=allow_not_ready)

    async def admit(self, scope: Scope) -> None:
        """Check a call to a workspace, and prepare that for a call that may only read.

        Raises:
            ToolrunnerError: The workspace is not here, not ready, or has a newer placement; or
                something of the chat can still write.
        """
        self.check(scope)
        if not scope.may_write:
            await self.reading_gate.pass_through(scope)

    def check_space(self, workspace_id: WorkspaceId) -> None:
        """Refuse writes to a workspace that exceeds its disk quota.

        Raises:
            QuotaExceeded: It does.
        """
        if (overrun := self.overruns.get(workspace_id)) is not None:
            raise QuotaExceeded(
                overrun.dimension, overrun.used, overrun.limit, is_partial=overrun.is_partial
            )

    def quota_of(self, workspace_id: WorkspaceId) -> Quota:
        """Return the quota of a workspace."""
        own = self.options.get(workspace_id)
        return self.quota if own is None else own.quota.filled(self.quota)

    def by_user(self) -> dict[int, WorkspaceId]:
        """Return the workspaces that have a user of this node's range, by user id."""
        found: dict[int, WorkspaceId] = {}
        if self._users is not None and self._directory.is_dir():
            for entry in os.scandir(self._directory):
                with suppress(OSError):
                    user = os.stat(os.path.join(entry.path, "home")).st_uid
                    if user in self._users.range:
                        found[user] = WorkspaceId(entry.name)
        return found

    def by_mark(self) -> dict[int, WorkspaceId]:
        """Return the workspaces by the mark of their processes."""
        found = {mark_of_workspace(each): each for each in self._known}
        with suppress(OSError):
            for name in os.listdir(self._directory):
                found[mark_of_workspace(name)] = WorkspaceId(name)
        return found

    def scratches(self) -> list[Path]:
        """Return the directories with temporary directories of single processes."""
        return [*self._directory.glob("*/scratch")]

    def missing(self, workspace_ids: Iterable[WorkspaceId]) -> tuple[WorkspaceId, ...]:
        """Return the workspaces that were removed; none if the directory of all is missing."""
        if not self._directory.is_dir():
            return ()
        return tuple(
            each
            for each in workspace_ids
            if self.admission.is_removed(each) or not (self._directory / each).exists()
        )

    def at(self, workspace_id: WorkspaceId) -> Workspace:
        """Return the paths of a workspace, whether it exists or not."""
        options = self.options.get(workspace_id, DEFAULT_OPTIONS)
        known = self._known.get(workspace_id)
        if known is None or known.options is not options:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            known = Workspace(self._directory / workspace_id, options)
            self._known[workspace_id] = known
        return known

    def prepared(self, workspace_id: WorkspaceId) -> Workspace:
        """Return a workspace, created if it does not exist, closed to other users.

        Raises:
            WorkspaceNotFound: It was removed, and is not created again.
        """
        if self.admission.is_removed(workspace_id):
            raise WorkspaceNotFound(workspace_id)
        workspace = self.at(workspace_id)
        is_new = not os.path.exists(workspace.root)
        for directory in (
            workspace.directory,
            workspace.root,
            workspace.home,
            workspace.temporary,
            workspace.logs,
            workspace.undo,
        ):
            _make(directory)
        if self._users is not None:
            if is_new or _is_of_the_service(workspace):
                root = Root.open_directory(str(workspace.root))
                try:
                    hand_over(root, self._users.take())
                finally:
                    root.close()
            _hand_over(workspace)
        return workspace


def _make(directory: Path) -> None:
    """Create a private directory, unless it exists, as it nearly always does."""
    if not os.path.isdir(directory):
        directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)


def _is_of_the_service(workspace: Workspace) -> bool:
    """Return whether files still belong to the service, from before workspaces had users.

    A registered directory belongs to its owner, and so do the files below an overlay.
    """
    if workspace.options.files is not None:
        return False
    return workspace.root.stat().st_uid == os.geteuid() and not os.path.ismount(workspace.root)


def _hand_over(workspace: Workspace) -> None:
    """Give a workspace's directories the owner of its files, and let it traverse to them."""
    owner = workspace.root.stat().st_uid
    if workspace.home.stat().st_uid == owner:
        return
    for directory in (workspace.directory.parent, workspace.directory):
        directory.chmod(PASSABLE)
    # Output belongs to the service, and the workspace's group may read it.
    os.chown(workspace.logs, -1, owner)
    workspace.logs.chmod(READABLE)
    os.chown(workspace.temporary, owner, owner)
    # Last: it marks that the rest is done.
    os.chown(workspace.home, owner, owner)
