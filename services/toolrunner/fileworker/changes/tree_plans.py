"""Plans to move, delete and restore whole entries, with the images to undo them."""

import os
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Entry, Root
from toolrunner.fileworker.changes.commit import roll_back
from toolrunner.fileworker.changes.entries import (
    DIRECTORY_ETAG,
    etag_at,
    inode_etag,
    link_etag,
    remove_entry,
)
from toolrunner.fileworker.changes.git_guard import GitGuard
from toolrunner.fileworker.changes.paths import delete_directory, opened_entry, rename_entry
from toolrunner.fileworker.content.snapshot import info_of, snapshot
from toolrunner.fileworker.jobs import PAUSE, Pause
from toolrunner.fileworker.protocol import Done, PlanDelete, PlanMove, Planned, PlanRestore
from toolrunner.fileworker.search.find import suggestions_for
from toolrunner.fileworker.values import Change, ChangeKind, EntryKind, Image

#: Deletions beyond this cannot be undone.
KEPT_ENTRIES_MAX: Final = 2000
#: Each level has directories open.
KEPT_DEPTH_MAX: Final = 50
KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
STEPS_PER_TURN: Final = 50
CHANGES_MAX: Final = 100


@dataclass
class TreePlan:
    """A plan for entries.

    Attributes:
        root: The root of the files.
        token: Identifies the change.
        images: The entries before and after, in the order of execution.
        changes: The changes.
    """

    root: Root
    token: str
    images: tuple[Image, ...] = ()
    changes: tuple[Change, ...] = ()
    done: list[Image] = field(default_factory=list)

    def planned(self) -> Planned:
        """Return the plan as an answer."""
        return Planned(self.changes[:CHANGES_MAX], images=self.images)

    def take_back(self) -> None:
        """Roll back the executed part."""
        for image in reversed(self.done):
            roll_back(self.root, image, self.token)


@dataclass
class Deletion(TreePlan):
    """The deletion of an entry, with everything in it."""

    is_recursive: bool = False

    @classmethod
    def of(cls, root: Root, request: PlanDelete) -> "Deletion":
        """Plan it; a missing entry needs no change.

        Raises:
            FileRefused: It may not be deleted, or is a directory that is not empty.
        """
        plan = cls(root, request.token, is_recursive=request.recursive)
        path = root.relative(request.path)
        try:
            with opened_entry(root, path, request.path) as entry:
                GitGuard(root, request.guards_git).check(entry, request.path)
                there = entry.lstat()
                if there is None:
                    return plan
                plan.images = plan._kept(entry, there, request)
        except errors.FileRefused as refused:
            if refused.reason is errors.Reason.PATH_NOT_FOUND:
                return plan
            raise
        except OSError as error:
            raise errors.refusal_of(error, request.path) from error
        plan.changes = (Change(path, ChangeKind.DELETED, before_etag=plan.images[-1].before_etag),)
        return plan

    def _kept(self, entry: Entry, there: os.stat_result, request: PlanDelete) -> tuple[Image, ...]:
        path = self.root.real_path(entry)
        if stat.S_ISDIR(there.st_mode) and not request.recursive:
            with self.root.opened(path, os.O_RDONLY | os.O_DIRECTORY) as fd, os.scandir(fd) as each:
                if next(each, None) is not None:
                    remedy = "it is not empty; ask to delete all that is in it"
                    raise errors.wrong_kind(request.path, "directory", remedy)
        images: list[Image] = []
        size = 0
        for image in _entries(self.root, path):
            images.append(image)
            size += len(image.before or b"")
            if not image.is_kept or len(images) > KEPT_ENTRIES_MAX or size > KEPT_BYTES_MAX:
                mode = stat.S_IMODE(there.st_mode)
                etag = DIRECTORY_ETAG if stat.S_ISDIR(there.st_mode) else inode_etag(entry)
                return (Image(path, None, mode, etag, "", is_kept=False, kind=EntryKind.TREE),)
        return tuple(images)

    def commit(self) -> Generator[Pause, None, Done]:
        """Delete it; as a whole or not at all if it can be undone.

        Raises:
            FileRefused: An entry has changed meanwhile.
        """
        if self.images and self.images[0].kind is EntryKind.TREE:
            return Done(count=(yield from self._delete_for_good(self.images[0])))
        for number, image in enumerate(self.images, start=1):
            try:
                with self.root.real_entry(image.path) as entry:
                    if etag_at(entry) != image.before_etag:
                        raise errors.changed(image.path, "")
                    self.done.append(image)
                    remove_entry(entry)
                    if number == len(self.images):
                        os.fsync(entry.directory_fd)
            except OSError as error:
                raise errors.changed(image.path, "") from error
            if number % STEPS_PER_TURN == 0:
                yield PAUSE
        return Done(count=len(self.images))

    def _delete_for_good(self, image: Image) -> Generator[Pause, None, int]:
        try:
            with self.root.real_entry(image.path) as entry:
                there = entry.lstat()
                if there is None:
                    return 0
                if not stat.S_ISDIR(there.st_mode):
                    remove_entry(entry)
                    count = 1
                else:
                    count = yield from delete_directory(entry, recursive=self.is_recursive)
                os.fsync(entry.directory_fd)
                return count
        except OSError as error:
            raise errors.refusal_of(error, image.path) from error


def _entries(root: Root, path: str, depth: int = KEPT_DEPTH_MAX) -> Iterator[Image]:
    """Yield an entry and all below it, deepest first."""
    with root.real_entry(path) as entry:
        there = entry.lstat()
        if there is None:
            return
        mode = stat.S_IMODE(there.st_mode)
        if stat.S_ISLNK(there.st_mode):
            target = os.fsencode(os.readlink(entry.name, dir_fd=entry.directory_fd))
            yield Image(path, target, mode, link_etag(target), "", kind=EntryKind.LINK)
        elif stat.S_ISREG(there.st_mode) and there.st_size <= KEPT_BYTES_MAX:
            found = snapshot(entry, shown=path)
            if found is not None:
                is_kept = found.content is not None
                yield Image(path, found.content, mode, found.etag, "", is_kept=is_kept)
        elif stat.S_ISDIR(there.st_mode) and depth > 0:
            with root.opened(path, os.O_RDONLY | os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
                for below in entries:
                    yield from _entries(root, f"{path}/{below.name}", depth - 1)
            yield Image(path, b"", mode, DIRECTORY_ETAG, "", kind=EntryKind.DIRECTORY)
        else:
            yield Image(path, None, mode, "", "", is_kept=False)


@dataclass
class MovePlan(TreePlan):
    """The move of an entry to another path."""

    request: PlanMove | None = None

    @classmethod
    def of(cls, root: Root, request: PlanMove) -> "MovePlan":
        """Plan it.

        Raises:
            FileRefused: There is none, or the target exists.
        """
        old, new = root.relative(request.path), root.relative(request.new_path)
        guard = GitGuard(root, request.guards_git)
        try:
            with opened_entry(root, old, request.path) as source:
                if source.lstat() is None:
                    raise errors.not_found(request.path, suggestions_for(root, old))
                guard.check(source, request.path)
                guard.check_path(root.future(new), request.new_path)
                images = (
                    *_overwritten(root, root.future(new), request),
                    Image(
                        path=root.future(new),
                        before=None,
                        mode=None,
                        before_etag="",
                        after_etag=inode_etag(source),
                        kind=EntryKind.MOVED,
                        moved_from=root.real_path(source),
                    ),
                )
        except OSError as error:
            raise errors.refusal_of(error, request.new_path) from error
        changes = (Change(new, ChangeKind.MOVED, old_path=old),)
        return cls(root, request.token, images, changes, request=request)

    def commit(self) -> Generator[Pause, None, Done]:
        """Move it, in one step.

        Raises:
            FileRefused: It has changed, or the target exists.
        """
        assert self.request is not None, "it was planned"
        yield PAUSE
        request, image = self.request, self.images[-1]
        guard = GitGuard(self.root, request.guards_git)
        try:
            above = image.path.rpartition("/")[0]
            if above:
                self.root.make_directories(above)
            with (
                self.root.real_entry(image.moved_from) as source,
                self.root.real_entry(image.path) as target,
            ):
                guard.check(source, request.path)
                guard.check(target, request.new_path)
                overwritten = self.images[0].before_etag if len(self.images) > 1 else ""
                is_same = inode_etag(source) == image.after_etag
                if not is_same or (etag_at(target) or "") != overwritten:
                    raise errors.changed(request.path, "")
                rename_entry(source, target, overwrite=request.overwrite, asked=request.new_path)
                os.fsync(target.directory_fd)
                os.fsync(source.directory_fd)
                moved = target.lstat()
        except OSError as error:
            raise errors.refusal_of(error, request.new_path) from error
        assert moved is not None, "what was just put there is there"
        return Done(count=1, info=info_of(self.root.relative(request.new_path), moved))


def _overwritten(root: Root, path: str, request: PlanMove) -> tuple[Image, ...]:
    """Return the image of the file that the move replaces."""
    try:
        with root.real_entry(path) as entry:
            there = entry.lstat()
    except OSError:
        return ()
    if there is None:
        return ()
    if not request.overwrite or stat.S_ISDIR(there.st_mode):
        raise errors.exists(request.new_path)
    return tuple(_entries(root, path))


@dataclass
class RestorePlan(TreePlan):
    """The restore of entries."""

    undone: tuple[Image, ...] = ()
    guards_git: bool = False

    @classmethod
    def of(cls, root: Root, request: PlanRestore) -> "RestorePlan":
        """Plan it.

        Raises:
            FileRefused: One of them has changed since, or was not stored.
        """
        undone = tuple(reversed(request.images))
        paths = {image.path for image in undone}
        for image in undone:
            if not image.is_kept:
                text = f"{image.path!r} was too large to be kept, so it cannot be put back"
                raise errors.FileRefused(errors.Reason.NOTHING_TO_UNDO, text, path=image.path)
            if image.path.rpartition("/")[0] not in paths:
                # Entries below are restored as they were; no new ones are added.
                for path in filter(None, (image.path, image.moved_from)):
                    GitGuard(root, request.guards_git).check_path(path, path)
            _check_after(root, image, undone)
        images = tuple(map(_inverse, undone))
        changes = tuple(map(_change, undone))
        return cls(root, request.token, images, changes, undone=undone)

    def commit(self) -> Generator[Pause, None, Done]:
        """Restore them, all or none.

        Raises:
            FileRefused: One of them has changed meanwhile.
        """
        for path in {self.undone[0].path, *(each.moved_from for each in self.undone)}:
            if above := path.rpartition("/")[0]:
                self.root.make_directories(above)
        for number, (image, inverse) in enumerate(zip(self.undone, self.images, strict=True)):
            self.done.append(inverse)
            if not roll_back(self.root, image, self.token):
                raise errors.changed(image.path, "")
            if number % STEPS_PER_TURN == 0:
                yield PAUSE
        return Done(count=len(self.undone))


def _check_after(root: Root, image: Image, undone: tuple[Image, ...]) -> None:
    """Refuse an entry that is not as the change left it."""
    now: str | None = ""
    try:
        with root.real_entry(image.path) as entry:
            is_moved = image.kind is EntryKind.MOVED
            now = inode_etag(entry) if is_moved else etag_at(entry)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise errors.refusal_of(error, image.path) from error
    # A path that was replaced by a move has the moved entry, which is moved back first.
    is_covered = image.kind is not EntryKind.MOVED and any(
        other.path == image.path for other in undone if other is not image
    )
    if now != image.after_etag and not is_covered:
        raise errors.changed(image.path, now or "")


def are_files(images: tuple[Image, ...]) -> bool:
    """Return whether only files are to be restored, whose texts can be compared."""
    return all(image.kind is EntryKind.FILE for image in images)


def _inverse(image: Image) -> Image:
    path, moved_from, after = image.path, "", image.before_etag
    if image.kind is EntryKind.MOVED:
        path, moved_from, after = image.moved_from, image.path, image.after_etag
    return Image(path, None, None, "", after, kind=image.kind, moved_from=moved_from)


def _change(image: Image) -> Change:
    if image.kind is EntryKind.MOVED:
        return Change(image.moved_from, ChangeKind.MOVED, old_path=image.path)
    size = len(image.before or b"") if image.kind is EntryKind.FILE else 0
    return Change(image.path, ChangeKind.CREATED, etag=image.before_etag, size_bytes=size)
