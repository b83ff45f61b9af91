"""The directories of workspaces: for now one each, made when it is first used."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from toolrunner.domain import WorkspaceId
from toolrunner.errors import OutsideWorkspace, PathNotFound, WrongPathKind
from toolrunner.spawner import open_directory_beneath
from toolrunner.users import Users

PRIVATE: Final = 0o700
#: For others to walk through, not to look into.
PASSABLE: Final = 0o711
#: For the group to look into; what is made there belongs to it too.
READABLE: Final = 0o2750


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a workspace has its files, and what belongs to it beside them."""

    directory: Path

    @property
    def root(self) -> Path:
        """The files."""
        return self.directory / "files"

    @property
    def home(self) -> Path:
        """The home of its processes, so that their settings do not litter the files."""
        return self.directory / "home"

    @property
    def temporary(self) -> Path:
        """For files that nobody needs to keep."""
        return self.directory / "tmp"

    @property
    def logs(self) -> Path:
        """The output of its processes."""
        return self.directory / "logs"

    @property
    def undo(self) -> Path:
        """What files were before they were changed."""
        return self.directory / "undo"

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


class Workspaces:
    """All workspaces below one directory.

    Args:
        directory: Where they are.
        users: Gives each its own user; None if they share that of the service.
    """

    def __init__(self, directory: Path, users: Users | None = None) -> None:
        self._directory = directory
        self._users = users

    def at(self, workspace_id: WorkspaceId) -> Workspace:
        """Return where a workspace is, whether it is there or not."""
        return Workspace(self._directory / workspace_id)

    def prepared(self, workspace_id: WorkspaceId) -> Workspace:
        """Return a workspace, made if it is not there yet, closed to other users."""
        workspace = self.at(workspace_id)
        is_new = not workspace.root.exists()
        for directory in (
            workspace.directory,
            workspace.root,
            workspace.home,
            workspace.temporary,
            workspace.logs,
            workspace.undo,
        ):
            directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if self._users is not None:
            if is_new:
                uid = self._users.take()
                os.chown(workspace.root, uid, uid)
            _hand_over(workspace)
        return workspace


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
