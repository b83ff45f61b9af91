"""Atomic application of a merge to its parent, also if the service is killed.

Theory: new files are staged on the file system of the parent, so that moving one to its path is one
operation. Programs of the workspace do not reach them there, unless the workspace is an existing
directory of the host, which may be on another file system. The plan file commits the merge: until
it is on disk nothing is changed, and once it is, recovery executes it to the end. A step that fails
marks the plan as reverted, on disk too if that is possible, and all steps are undone. Every step is
idempotent. While a step is neither done nor undone, the plan and the stage are kept: the stage has
the only copy of the parent's files. Without a plan that can be decoded no program knows their
paths, and a path may be taken by another file; then the stage is given to the people of the
workspace under a name that they see.
"""

import errno
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, assert_never

import msgspec

from parley.files import write_atomically
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.trash import Trash
from toolrunner.filesystem.tree import (
    look,
    rename_to_free,
)
from toolrunner.primitives.errors import MergeInterrupted, MergeUnfinished
from toolrunner.workspaces.merge.comparison import STAGE
from toolrunner.workspaces.merge.plan import (
    DropDirectory,
    MakeDirectory,
    MergePlan,
    MergeStep,
    MoveAway,
    MoveIn,
    Places,
    new_path,
)
from toolrunner.workspaces.merge.staging import give_to_owner

logger = logging.getLogger(__name__)

PLAN: Final = "merge.json"
#: Where a plan that cannot be decoded is kept, beside the plan of the next merge.
DAMAGED_PLAN: Final = "merge-damaged.json"
#: The directory for its staged files, in the workspace, with a number.
SET_ASIDE: Final = "unfinished-merge"
DIRECTORY_MODE: Final = 0o755


class DamagedPlan(MergeUnfinished):
    """The plan of a merge cannot be decoded, so that it can neither be applied nor undone."""


@dataclass(frozen=True, slots=True)
class Merge:
    """The merge into one parent: its plan on disk and its staged files.

    Attributes:
        directory: The parent's directory, which contains its files.
        root: The parent's files.
    """

    directory: Path
    root: Path

    def is_private(self) -> bool:
        """Return whether files can be staged where programs of the workspace do not reach them."""
        if not self.root.is_relative_to(self.directory):
            return False
        return _mount_of(self.root) == _mount_of(self.directory)

    @contextmanager
    def places(self, *, is_private: bool) -> Iterator[Places]:
        """Open the parent and the directory of staged files, which is created if it is missing.

        Raises:
            OSError: They cannot be opened.
            MergeInterrupted: Something else has the name of the directory.
        """
        root = Root.open_directory(str(self.root))
        try:
            above = Root.open_directory(str(self.directory)) if is_private else root
            try:
                for path in (STAGE, f"{STAGE}/new", f"{STAGE}/old"):
                    _make(above, path, 0o700)
                with above.opened(STAGE, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW) as fd:
                    yield Places(root, Root(fd, STAGE), is_private)
            finally:
                if above is not root:
                    above.close()
        finally:
            root.close()

    def pending(self) -> MergePlan | None:
        """Return the plan that was committed and not completed.

        Raises:
            DamagedPlan: There is one that cannot be decoded.
            MergeUnfinished: There may be one, which the disk does not give.
        """
        try:
            return msgspec.json.decode((self.directory / PLAN).read_bytes(), type=MergePlan)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MergeUnfinished(PLAN) from error
        except msgspec.DecodeError as error:
            raise DamagedPlan(PLAN) from error

    def set_aside(self) -> str:
        """Give the staged files of a damaged plan to the workspace, and keep the plan.

        Returns the path of their directory in the workspace, empty if nothing is staged. A call
        that was cut off can be repeated.

        Raises:
            OSError: They cannot be moved.
        """
        paths = [self._give_away(each) for each in (self.directory / STAGE, self.root / STAGE)]
        (self.directory / PLAN).replace(self.directory / DAMAGED_PLAN)
        return next(filter(None, paths), "")

    def decide(self, plan: MergePlan) -> None:
        """Write the plan to disk, which commits the merge."""
        write_atomically(self.directory / PLAN, msgspec.json.encode(plan))

    def carry_out(self, plan: MergePlan) -> None:
        """Execute all steps of a committed plan.

        Raises:
            MergeInterrupted: The parent changed meanwhile; all steps are undone.
            OSError: A step failed; all steps are undone.
            MergeUnfinished: Some steps could not be undone; nothing may be cleared.
        """
        with ExitStack() as opened:
            try:
                places = opened.enter_context(self.places(is_private=plan.is_private))
            except (MergeInterrupted, OSError) as error:
                raise MergeUnfinished(self.directory.name) from error
            if not plan.is_turned_back:
                try:
                    for step in plan.steps:
                        go_forward(places, step)
                    return
                except (MergeInterrupted, OSError):
                    # On a full disk the steps are undone all the same.
                    with suppress(OSError):
                        self.decide(_turned_back(plan))
                    self._turn_back(places, plan)
                    raise
            self._turn_back(places, plan)

    def clear(self) -> None:
        """Remove the plan and all staged files."""
        (self.directory / PLAN).unlink(missing_ok=True)
        for staged in (self.directory / STAGE, self.root / STAGE):
            if staged.is_symlink() or staged.is_file():
                staged.unlink()
            elif staged.is_dir():
                # In place: the files may be on another file system than the trash.
                Trash(staged).empty()
                staged.rmdir()

    def _turn_back(self, places: Places, plan: MergePlan) -> None:
        unfinished: MergeUnfinished | None = None
        for step in reversed(plan.steps):
            try:
                go_back(places, step)
            except (MergeInterrupted, OSError) as error:
                # The other files are restored all the same.
                unfinished = MergeUnfinished(step.path)
                unfinished.__cause__ = error
        if unfinished is not None:
            raise unfinished
        try:
            if not _has_entries(places.stage, "old"):
                return
            path = self._give_away((self.directory if plan.is_private else self.root) / STAGE)
        except OSError as error:
            raise MergeUnfinished(self.directory.name) from error
        logger.error(
            "files of a merge that was undone were set aside, because others took their paths: %s",
            path,
            extra={"workspace_id": self.directory.name},
        )

    def _give_away(self, staged: Path) -> str:
        """Move a stage to the first free number of a name in the workspace.

        Returns its path in the workspace, empty if there is no stage.
        """
        with ExitStack() as opened:
            roots = [Root.open_directory(str(each)) for each in (staged.parent, self.root)]
            for each in roots:
                opened.callback(each.close)
            above, root = roots
            if look(above, STAGE) is None:
                return ""
            with above.opened(STAGE, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW) as fd:
                give_to_owner(Root(fd, STAGE), root)
            for number in count(1):
                with suppress(FileExistsError):
                    free = f"{SET_ASIDE}-{number}"
                    rename_to_free(above.fd, STAGE, root.fd, free)
                    return free
        raise AssertionError(staged)  # Numbers do not end.


def _mount_of(directory: Path) -> str:
    """Return the id of the mount that a directory is in: entries cannot be renamed across two."""
    root = Root.open_directory(str(directory))
    try:
        lines = Path(f"/proc/self/fdinfo/{root.fd}").read_text().splitlines()
    finally:
        root.close()
    return next(line for line in lines if line.startswith("mnt_id:"))


def _has_entries(root: Root, path: str) -> bool:
    """Return whether a directory exists and has entries."""
    with (
        suppress(FileNotFoundError, NotADirectoryError),
        root.opened(path, os.O_RDONLY | os.O_DIRECTORY) as fd,
    ):
        return bool(os.listdir(fd))
    return False


def _turned_back(plan: MergePlan) -> MergePlan:
    """Return a plan to undo, without the parts that only an applied merge needs."""
    return msgspec.structs.replace(plan, is_turned_back=True, response=b"", applied=None)


def go_forward(places: Places, step: MergeStep) -> None:
    """Execute a step, or the rest of it.

    Raises:
        MergeInterrupted: Its path is not as it was compared, or its staged file is gone.
        OSError: It failed.
    """
    path, root, stage = step.path, places.root, places.stage
    match step:
        case MoveAway(slot=slot, identity=identity):
            found = look(root, path)
            if look(stage, _old(slot)) is not None or found is None:
                return
            if identity is not None and found.identity != identity:
                raise MergeInterrupted(path)
            _rename(root, path, stage, _old(slot))
        case DropDirectory(must_go=must_go):
            _drop(root, path, must_go=must_go)
        case MakeDirectory():
            _make(root, path, DIRECTORY_MODE)
        case MoveIn(slot=slot, inode=inode):
            if look(stage, new_path(slot)) is not None:
                _link(stage, new_path(slot), root, path)
            elif not places.is_private and inode and not _is_at(root, path, inode):
                raise MergeInterrupted(path)
        case _:
            assert_never(step)


def go_back(places: Places, step: MergeStep) -> None:
    """Undo a step that was completed, begun or never begun."""
    path, root, stage = step.path, places.root, places.stage
    match step:
        case MoveAway(slot=slot):
            if look(stage, _old(slot)) is not None and look(root, path) is None:
                _rename(stage, _old(slot), root, path)
        case DropDirectory(mode=mode):
            if look(root, path) is None:
                _make(root, path, mode)
        case MakeDirectory():
            with suppress(OSError):
                _drop(root, path, must_go=False)
        case MoveIn(slot=slot, inode=inode):
            staged, placed = look(stage, new_path(slot)), look(root, path)
            if placed is None or inode not in (0, placed.seen.st_ino):
                return
            if staged is None:
                # Kept in the stage, because its inode is free for another file if it is removed.
                _rename(root, path, stage, new_path(slot))
            elif staged.seen.st_ino == placed.seen.st_ino:
                _unlink(root, path)
        case _:
            assert_never(step)


def _is_at(root: Root, path: str, inode: int) -> bool:
    found = look(root, path)
    return found is not None and found.seen.st_ino == inode


def _old(slot: int) -> str:
    return f"old/{slot}"


def _split(path: str) -> tuple[str, str]:
    above, _, name = path.rpartition("/")
    return above, name


def _rename(source: Root, path: str, target: Root, new_path: str) -> None:
    (above, name), (beside, new_name) = _split(path), _split(new_path)
    flags = os.O_PATH | os.O_DIRECTORY
    with source.opened(above, flags) as fd, target.opened(beside, flags) as target_fd:
        os.rename(name, new_name, src_dir_fd=fd, dst_dir_fd=target_fd)


def _link(stage: Root, staged: str, root: Root, path: str) -> None:
    """Link a staged file to its path without replacing anything, then remove the staged name."""
    (above, name), (beside, new_name) = _split(staged), _split(path)
    flags = os.O_PATH | os.O_DIRECTORY
    with stage.opened(above, flags) as fd, root.opened(beside, flags) as target_fd:
        try:
            os.link(name, new_name, src_dir_fd=fd, dst_dir_fd=target_fd, follow_symlinks=False)
        except FileExistsError as error:
            there = os.stat(new_name, dir_fd=target_fd, follow_symlinks=False)
            if there.st_ino != os.stat(name, dir_fd=fd, follow_symlinks=False).st_ino:
                raise MergeInterrupted(path) from error
        os.unlink(name, dir_fd=fd)


def _unlink(root: Root, path: str) -> None:
    above, name = _split(path)
    with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
        os.unlink(name, dir_fd=fd)


def _drop(root: Root, path: str, *, must_go: bool) -> None:
    above, name = _split(path)
    try:
        with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
            os.rmdir(name, dir_fd=fd)
    except (FileNotFoundError, NotADirectoryError):
        # It was removed already, and its replacement may exist.
        return
    except OSError as error:
        if must_go and error.errno == errno.ENOTEMPTY:
            raise MergeInterrupted(path) from error
        if must_go or error.errno != errno.ENOTEMPTY:
            raise


def _make(root: Root, path: str, mode: int) -> None:
    above, name = _split(path)
    with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
        try:
            os.mkdir(name, mode, dir_fd=fd)
            owner = os.fstat(root.fd).st_uid
            if owner != os.geteuid():
                os.chown(name, owner, owner, dir_fd=fd, follow_symlinks=False)
        except FileExistsError as error:
            if not stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                raise MergeInterrupted(path) from error
