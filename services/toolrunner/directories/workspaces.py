"""The directories of workspaces, and who may use them.

A workspace that nobody placed is made when it is first used.
"""

import errno
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from toolrunner.directories.users import FIRST, Users
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.tree import hand_over
from toolrunner.primitives.domain import NO_QUOTA, Quota, Scope, WorkspaceId
from toolrunner.primitives.errors import (
    OutsideWorkspace,
    PathNotFound,
    QuotaExceeded,
    WrongPathKind,
)
from toolrunner.sandbox import Network, Profile
from toolrunner.spawner import mark_of_workspace, open_directory_beneath

PRIVATE: Final = 0o700
#: For others to walk through, not to look into.
PASSABLE: Final = 0o711
#: For the group to look into; what is made there belongs to it too.
READABLE: Final = 0o2750
#: So many are remembered as they are put together.
KNOWN_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class WorkspaceOptions:
    """What is not the same for all workspaces.

    Attributes:
        files: Where its files are, if they are not beside the rest.
        readable: Directories outside that its processes must be able to read.
        environment: Variables that its processes have unless a call says otherwise.
        profile: The most that its processes may write; None for what a call says.
        network: The most that they may reach, and what they do unless a call says less.
        quota: What it may use altogether.
    """

    files: Path | None = None
    readable: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    profile: Profile | None = None
    network: Network | None = None
    quota: Quota = NO_QUOTA


DEFAULT_OPTIONS: Final = WorkspaceOptions()


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a workspace has its files, and what belongs to it beside them.

    Attributes:
        root: The files.
        home: The home of its processes, so that their settings do not litter the files.
        temporary: For files that nobody needs to keep.
        logs: The output of its processes.
        undo: What files were before they were changed.
    """

    directory: Path
    options: WorkspaceOptions = DEFAULT_OPTIONS
    root: Path = field(init=False, repr=False, compare=False)
    home: Path = field(init=False, repr=False, compare=False)
    temporary: Path = field(init=False, repr=False, compare=False)
    logs: Path = field(init=False, repr=False, compare=False)
    undo: Path = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once, because every call needs them and a path takes its time to be put together.
        object.__setattr__(self, "root", self.options.files or self.directory / "files")
        places = {"home": "home", "temporary": "tmp", "logs": "logs", "undo": "undo"}
        for name, place in places.items():
            object.__setattr__(self, name, self.directory / place)

    def relative(self, path: str) -> str:
        """Return a directory's path relative to the root, given so or absolute inside it.

        The kernel resolves it once more when the process starts, so a link that is put there in
        between leads nowhere either.

        Raises:
            OutsideWorkspace: It leads out of the workspace.
            PathNotFound: There is no such path.
            WrongPathKind: It is no directory.
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
    """Knows which workspaces may be used."""

    def check(self, scope: Scope, *, allow_not_ready: bool) -> None:
        """Let a call to a workspace pass; `allow_not_ready` if what it asks for may be over.

        Raises:
            ToolrunnerError: The workspace is not here, not ready, or was placed anew.
        """
        ...


class AllAdmitted:
    """Lets every call pass, as long as nobody places workspaces."""

    def check(self, scope: Scope, *, allow_not_ready: bool) -> None:
        """Let it pass."""


class UseCounter:
    """Counts who uses each workspace at this moment, in one way."""

    def __init__(self) -> None:
        self._counts: Counter[WorkspaceId] = Counter()

    def __getitem__(self, workspace_id: WorkspaceId) -> int:
        return self._counts[workspace_id]

    @contextmanager
    def counted(self, workspace_id: WorkspaceId) -> Iterator[None]:
        """Count one more meanwhile."""
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
        directory: Where they are.
        users: Gives each its own user; None if they share that of the service.

    Attributes:
        waits: Calls that wait for a process of theirs.
        attachments: Terminals that someone is at.
        admission: Who may use them.
        particulars: What is not the same for all of them.
        quota: What those may use that nobody gave another one.
        overruns: Those that use more of the disk than they may.
    """

    def __init__(
        self, directory: Path, users: Users | None = None, quota: Quota = NO_QUOTA
    ) -> None:
        self.quota = quota
        self.overruns: dict[WorkspaceId, QuotaExceeded] = {}
        self.admission: Admission = AllAdmitted()
        self.options: dict[WorkspaceId, WorkspaceOptions] = {}
        self.waits = UseCounter()
        self.attachments = UseCounter()
        self._directory = directory
        self._users = users
        self._known: dict[WorkspaceId, Workspace] = {}

    def check(self, scope: Scope, *, allow_not_ready: bool = False) -> None:
        """Let a call to a workspace pass; `allow_not_ready` if what it asks for may be over.

        Raises:
            ToolrunnerError: The workspace is not here, not ready, or was placed anew.
        """
        self.admission.check(scope, allow_not_ready=allow_not_ready)

    def check_space(self, workspace_id: WorkspaceId) -> None:
        """Refuse to write where too much was written.

        Raises:
            QuotaExceeded: The workspace uses more than it may.
        """
        if (overrun := self.overruns.get(workspace_id)) is not None:
            raise QuotaExceeded(
                overrun.dimension, overrun.used, overrun.limit, is_partial=overrun.is_partial
            )

    def quota_of(self, workspace_id: WorkspaceId) -> Quota:
        """Return what a workspace may use."""
        own = self.options.get(workspace_id)
        return self.quota if own is None else own.quota.filled(self.quota)

    def by_user(self) -> dict[int, WorkspaceId]:
        """Return the workspaces that have a user of their own, by that."""
        found: dict[int, WorkspaceId] = {}
        if self._users is not None and self._directory.is_dir():
            for entry in os.scandir(self._directory):
                with suppress(OSError):
                    user = os.stat(os.path.join(entry.path, "home")).st_uid
                    if user >= FIRST:
                        found[user] = WorkspaceId(entry.name)
        return found

    def by_mark(self) -> dict[int, WorkspaceId]:
        """Return the workspaces by the mark that their processes have."""
        found = {mark_of_workspace(each): each for each in self._known}
        with suppress(OSError):
            for name in os.listdir(self._directory):
                found[mark_of_workspace(name)] = WorkspaceId(name)
        return found

    def at(self, workspace_id: WorkspaceId) -> Workspace:
        """Return where a workspace is, whether it is there or not."""
        options = self.options.get(workspace_id, DEFAULT_OPTIONS)
        known = self._known.get(workspace_id)
        if known is None or known.options is not options:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            known = Workspace(self._directory / workspace_id, options)
            self._known[workspace_id] = known
        return known

    def prepared(self, workspace_id: WorkspaceId) -> Workspace:
        """Return a workspace, made if it is not there yet, closed to other users."""
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
    """Make a directory for nobody else, unless it is there, as it nearly always is."""
    if not os.path.isdir(directory):
        directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)


def _is_of_the_service(workspace: Workspace) -> bool:
    """Tell whether files were made when workspaces had no users, and are ours to give away.

    A registered directory belongs to whoever has it, and what lies under an overlay as well.
    """
    if workspace.options.files is not None:
        return False
    return workspace.root.stat().st_uid == os.geteuid() and not os.path.ismount(workspace.root)


def _hand_over(workspace: Workspace) -> None:
    """Give what belongs to a workspace to the owner of its files, and let them walk to it."""
    owner = workspace.root.stat().st_uid
    if workspace.home.stat().st_uid == owner:
        return
    for directory in (workspace.directory.parent, workspace.directory):
        directory.chmod(PASSABLE)
    # Output is the service's, and its owner may read it.
    os.chown(workspace.logs, -1, owner)
    workspace.logs.chmod(READABLE)
    os.chown(workspace.temporary, owner, owner)
    # Last: it tells that the rest is done.
    os.chown(workspace.home, owner, owner)
