"""Creation of the files of a workspace from each kind of source, renamed when complete."""

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Protocol, TypeVar, assert_never

import msgspec

from toolrunner.directories.workspaces import Workspace, Workspaces
from toolrunner.egress.reached_hosts import copy_record
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.copy import Copied
from toolrunner.filesystem.spread import spread_out
from toolrunner.filesystem.trash import PRIVATE, Trash
from toolrunner.filesystem.tree import hand_over
from toolrunner.primitives.domain import Quota, WorkspaceId
from toolrunner.primitives.errors import ForkNotPossible, InvalidRequest, QuotaExceeded
from toolrunner.spawner.client.node_programs import ProgramFailed
from toolrunner.workspaces.domain.spec import (
    Fork,
    ForkMode,
    Git,
    Local,
    LocalDirectory,
    Scratch,
    Source,
)
from toolrunner.workspaces.sources.clone import Cloner
from toolrunner.workspaces.sources.disk_guard import within_disk_limit
from toolrunner.workspaces.sources.home_file import copy_home_file
from toolrunner.workspaces.sources.overlays import Overlays
from toolrunner.workspaces.sources.remotes import RemoteRefused
from toolrunner.workspaces.sources.tree_copies import OriginalGone, TreeCopies

T = TypeVar("T")

#: Where files are made; they are renamed to their final path when complete.
UNFINISHED: Final = "new"
BASE: Final = "base"
LAYER: Final = "layer"
MEBIBYTE: Final = 1024 * 1024

Say = Callable[[str, str], None]


class SourceFailed(Exception):
    """The files cannot be made.

    Attributes:
        is_full: Whether the disk or the quota is full.
        is_recreatable: Whether a retry may help.
    """

    def __init__(self, message: str, *, is_full: bool = False, is_recreatable: bool = True) -> None:
        super().__init__(message)
        self.is_full = is_full
        self.is_recreatable = is_recreatable


@dataclass(frozen=True, slots=True)
class Made:
    """How the files were made.

    Attributes:
        root: Their directory if not in the workspace's own directory; else empty.
        fork_mode: How those of a fork were made.
        readable: Directories outside that its processes must be able to read.
    """

    root: str = ""
    fork_mode: ForkMode = ForkMode.UNSPECIFIED
    readable: tuple[str, ...] = ()


class Owners(Protocol):
    """Allocates a user for each workspace, where possible."""

    def take(self) -> int | None:
        """Return a user that owns nothing yet; None for the user of the service."""
        ...


class OwnedByService:
    """All workspaces belong to the user of the service."""

    def take(self) -> None:
        """Return None."""
        return


@dataclass(frozen=True, slots=True)
class SourceBuilder:
    """Makes the files of workspaces."""

    workspaces: Workspaces
    cloner: Cloner
    overlays: Overlays
    directories: tuple[LocalDirectory, ...]
    trash: Trash
    owners: Owners
    may_borrow: bool
    copies: TreeCopies = field(default_factory=TreeCopies)

    def described(self, source: Source) -> Made:
        """Return how the files that were made from a source are to be used.

        Raises:
            SourceFailed: They are a directory that is no longer offered.
        """
        match source:
            case Git():
                is_worktree = source.is_worktree and not source.depth and self.may_borrow
                objects = self.cloner.mirrors.at(source.url) / "objects"
                return Made(readable=(str(objects),) if is_worktree else ())
            case Local(has_overlay=False):
                return Made(root=str(self.registered(source).path))
            case Fork():
                return Made(fork_mode=ForkMode.COPY)
            case Scratch() | Local():
                return Made()
            case _:
                assert_never(source)

    async def make(
        self, workspace_id: WorkspaceId, source: Source, say: Say, *, user_id: str
    ) -> None:
        """Make the files of a workspace that has none, all of them or none.

        Raises:
            SourceFailed: They cannot be made.
        """
        workspace = self.workspaces.at(workspace_id)
        workspace.directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        spread_out(workspace.directory.parent)
        for left_behind in (UNFINISHED, BASE):
            await asyncio.to_thread(self.trash.throw, workspace.directory / left_behind)
        try:
            await self._make(workspace_id, workspace, source, say, user_id)
        except Exception as error:
            # Incomplete files are removed, since their disk space would not be counted.
            await asyncio.to_thread(self._clear, workspace)
            failed = _failure_of(error)
            if failed is error:
                raise
            raise failed from error

    def _clear(self, workspace: Workspace) -> None:
        for left_behind in (UNFINISHED, BASE):
            self.trash.throw(workspace.directory / left_behind)
        with suppress(OSError):
            self.trash.empty()

    async def _make(
        self,
        workspace_id: WorkspaceId,
        workspace: Workspace,
        source: Source,
        say: Say,
        user_id: str,
    ) -> None:
        unfinished = workspace.directory / UNFINISHED
        quota = self.workspaces.quota_of(workspace_id)
        match source:
            case Scratch(skeleton):
                await asyncio.to_thread(write_skeleton, unfinished, skeleton)
            case Git():
                if source.is_worktree and not self.may_borrow:
                    say("clone", "copying objects: its user may not read the node's mirror")
                    source = msgspec.structs.replace(source, is_worktree=False)
                clone = self.cloner.clone(
                    workspace_id, source, unfinished, lambda line: say("clone", line)
                )
                await within_disk_limit(quota, unfinished, self.cloner.mirrors.clock, clone)
            case Local():
                if not await self._local(workspace, source, quota, say, user_id):
                    return
            case Fork():
                await self._fork(workspace, source, quota, say, user_id)
                os.rename(unfinished, workspace.directory / "files")
                return
            case _:
                assert_never(source)
        owner = self.owners.take()
        if owner is not None:
            await asyncio.to_thread(_hand_over, unfinished, owner)
        os.rename(unfinished, workspace.directory / "files")

    async def _local(
        self, workspace: Workspace, source: Local, quota: Quota, say: Say, user_id: str
    ) -> bool:
        """Use a directory directly or under an overlay; return whether a copy was made instead."""
        registered = self.registered(source)
        if not registered.path.is_dir():
            raise SourceFailed(f"the directory {source.directory!r} of this node is not there")
        if not source.has_overlay:
            return False
        if self.overlays.is_available:
            say("copy", f"{source.directory}: an overlay of the kernel")
            self.overlays.lay(
                registered.path, workspace.directory / LAYER, workspace.directory / "files"
            )
            return False
        unfinished = workspace.directory / UNFINISHED
        copied = await self.copies.copy(registered.path, unfinished, None, quota, user_id=user_id)
        say("copy", f"{source.directory}: a snapshot, {_told(copied)}")
        return True

    async def _fork(
        self, workspace: Workspace, source: Fork, quota: Quota, say: Say, user_id: str
    ) -> None:
        parent = self.workspaces.at(source.parent_id)
        unfinished, base = workspace.directory / UNFINISHED, workspace.directory / BASE
        owner = self.owners.take()
        copied = await self.copies.copy(
            parent.root, unfinished, base, quota, owner, user_id=user_id
        )
        await asyncio.to_thread(copy_home_file, parent, workspace, owner)
        # Last: what the original got while it was copied may be in the copy.
        await asyncio.to_thread(copy_record, parent.directory, workspace.directory)
        say("copy", f"a copy of {source.parent_id}, {_told(copied)}")

    def registered(self, source: Local) -> LocalDirectory:
        """Return the registered directory of a name.

        Raises:
            SourceFailed: There is none, or it may not be used like this.
        """
        for each in self.directories:
            if each.name == source.directory:
                if each.is_overlay_only and not source.has_overlay:
                    text = f"{each.name!r} is offered under an overlay only; ask for one"
                    raise SourceFailed(text, is_recreatable=False)
                return each
        text = f"this node offers no directory {source.directory!r}; ask its administrator"
        raise SourceFailed(text, is_recreatable=False)

    def show_again(self, workspace_id: WorkspaceId, source: Source) -> None:
        """Mount the overlay of a workspace that has one; it is lost at a reboot.

        Raises:
            SourceFailed: It cannot be mounted any more.
        """
        workspace = self.workspaces.at(workspace_id)
        if not isinstance(source, Local) or not (workspace.directory / LAYER).is_dir():
            return
        try:
            self.overlays.lay(
                self.registered(source).path,
                workspace.directory / LAYER,
                workspace.directory / "files",
            )
        except OSError as error:
            raise SourceFailed(f"its overlay cannot be laid again: {error.strerror}") from error

    def take_off(self, workspace_id: WorkspaceId) -> None:
        """Unmount the overlay of a workspace, if it has one."""
        self.overlays.take_off(self.workspaces.at(workspace_id).directory / "files")


def check_fork(source: Fork) -> None:
    """Refuse a fork that cannot be made as requested.

    Raises:
        ForkNotPossible: Two workspaces would share files that either could change.
    """
    if source.mode is ForkMode.WORKTREE:
        cause = "both would write to one repository; ask for a copy"
        raise ForkNotPossible(source.mode, cause)
    if source.mode is ForkMode.OVERLAY:
        cause = "the parent goes on changing below it; ask for a copy"
        raise ForkNotPossible(source.mode, cause)


def check_skeleton(skeleton: dict[str, str]) -> None:
    """Refuse paths that are not inside of a workspace.

    Raises:
        InvalidRequest: One leads out, or is empty.
    """
    for path in skeleton:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            raise InvalidRequest("spec.scratch.skeleton", f"has the path {path!r}")


def write_skeleton(directory: Path, skeleton: dict[str, str]) -> None:
    """Make a directory with initial files; it is not made again if it is removed meanwhile."""
    directory.mkdir(mode=PRIVATE)
    for path, content in skeleton.items():
        for above in reversed(PurePosixPath(path).parents[:-1]):
            (directory / above).mkdir(exist_ok=True)
        (directory / path).write_text(content)


def _hand_over(directory: Path, owner: int) -> None:
    root = Root.open_directory(str(directory))
    try:
        hand_over(root, owner)
    finally:
        root.close()


def _failure_of(error: Exception) -> Exception:
    """Return the reported failure of an error; itself if there is none."""
    match error:
        case RemoteRefused():
            return SourceFailed(str(error), is_recreatable=False)
        case QuotaExceeded():
            text = (
                f"it would take {error.used} {error.dimension} or more, and may have "
                f"{error.limit}; what has several names is a file for each of them here"
            )
            return SourceFailed(text, is_full=True, is_recreatable=False)
        case OriginalGone():
            return SourceFailed("the workspace it is a copy of was removed meanwhile")
        case ProgramFailed():
            return SourceFailed(str(error), is_full="No space left" in str(error))
        case OSError():
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            return SourceFailed(f"its files cannot be made: {error.strerror}", is_full=is_full)
        case _:
            return error


def _told(copied: Copied) -> str:
    size = f"{copied.files} files, {copied.content_bytes / MEBIBYTE:.1f} MiB"
    how = "sharing their blocks" if copied.shared_files else "byte by byte"
    return f"{size}, {how}, {copied.left_out} left out"
