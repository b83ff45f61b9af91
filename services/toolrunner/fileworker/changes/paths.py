"""Operations on whole paths: stat, making directories, and the steps of moves and deletions."""

import errno
import os
import stat
from collections.abc import Generator
from itertools import islice
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Entry, Root, kind_of
from toolrunner.filesystem.tree import rename_to_free
from toolrunner.fileworker.changes.git_guard import GitGuard
from toolrunner.fileworker.content.snapshot import hashed, info_of, opened_file
from toolrunner.fileworker.jobs import PAUSE, Pause
from toolrunner.fileworker.protocol import Count, MakeDirectory, Stat, StatPath
from toolrunner.fileworker.search.find import suggestions_for

DEPTH_MAX: Final = 500
NAMES_PER_TURN: Final = 1000


def stat_path(root: Root, request: StatPath) -> Stat:
    """Return the metadata of a path; a missing path is a valid answer.

    Raises:
        FileRefused: It is outside, or may not be read.
    """
    path = root.relative(request.path)
    try:
        if request.no_follow and path:
            return _stat_link(root, path, request.path)
        with root.opened(path, os.O_PATH) as fd:
            result = os.fstat(fd)
            resolved = root.path_of(fd, path)
    except FileNotFoundError:
        return Stat(None, suggestions=suggestions_for(root, path))
    except NotADirectoryError:
        return Stat(None)
    except OSError as error:
        raise errors.refusal_of(error, request.path) from error
    etag = ""
    if request.with_etag and stat.S_ISREG(result.st_mode):
        with opened_file(root, path, shown=request.path) as (fd, _):
            etag = hashed(fd)
    return Stat(info_of(path, result), resolved, etag)


def _stat_link(root: Root, path: str, asked: str) -> Stat:
    above, _, name = path.rpartition("/")
    with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
        result = os.stat(name, dir_fd=fd, follow_symlinks=False)
        target = os.readlink(name, dir_fd=fd) if stat.S_ISLNK(result.st_mode) else ""
        directory = root.path_of(fd, above)
    return Stat(info_of(path, result, target), f"{directory}/{name}" if directory else name)


def make_directory(root: Root, request: MakeDirectory) -> Count:
    """Create a directory and its parents; return the number of new ones.

    Raises:
        FileRefused: The path is not a directory, or may not be created.
    """
    path = root.relative(request.path)
    try:
        if path:
            GitGuard(root, request.guards_git).check_path(root.future(path), request.path)
        return Count(len(root.make_directories(path)))
    except NotADirectoryError as error:
        raise errors.exists(request.path) from error
    except OSError as error:
        raise errors.refusal_of(error, request.path) from error


class opened_entry:  # noqa: N801 (used like a function)
    """Opens the directory of a name; the name itself may be a link, and is not followed.

    Raises:
        FileRefused: It is the workspace itself, or the directory cannot be opened.
    """

    def __init__(self, root: Root, path: str, asked: str) -> None:
        above, _, name = path.rpartition("/")
        if name in ("", ".."):
            raise errors.forbidden(asked, "it is the workspace itself, or has no name")
        try:
            fd = root.open(above, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise errors.refusal_of(error, asked) from error
        self._place = Entry(fd, name, path)

    def __enter__(self) -> Entry:
        return self._place

    def __exit__(self, *_: object) -> None:
        os.close(self._place.directory_fd)


def rename_entry(source: Entry, target: Entry, *, overwrite: bool, asked: str) -> None:
    """Rename an entry to another path; an existing file is replaced only with `overwrite`.

    Raises:
        FileRefused: The path exists.
        OSError: The kernel refuses.
    """
    there = target.lstat()
    if there is not None and (not overwrite or stat.S_ISDIR(there.st_mode)):
        raise errors.exists(asked)
    fds = source.directory_fd, target.directory_fd
    if overwrite:
        os.rename(source.name, target.name, src_dir_fd=fds[0], dst_dir_fd=fds[1])
    else:
        rename_to_free(fds[0], source.name, fds[1], target.name)


def delete_directory(entry: Entry, *, recursive: bool) -> Generator[Pause, None, int]:
    """Delete a directory; return the number of entries.

    It pauses in between, because a large directory takes long.

    Raises:
        OSError: It is not empty, or cannot be deleted.
    """
    count = 1
    if recursive:
        count += yield from _emptied(entry.directory_fd, entry.name, DEPTH_MAX)
    os.rmdir(entry.name, dir_fd=entry.directory_fd)
    return count


def _emptied(above_fd: int, name: str, depth: int) -> Generator[Pause, None, int]:
    """Delete all entries of a directory; links are deleted, not followed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=above_fd)
    count = 0
    try:
        while names := _names(fd):
            for each in names:
                result = os.stat(each, dir_fd=fd, follow_symlinks=False)
                if kind_of(result.st_mode) == "directory":
                    if depth == 0:
                        problem = "too many directories in one another"
                        raise OSError(errno.ENAMETOOLONG, problem, each)
                    count += yield from _emptied(fd, each, depth - 1)
                    os.rmdir(each, dir_fd=fd)
                else:
                    os.unlink(each, dir_fd=fd)
                count += 1
            yield PAUSE
    finally:
        os.close(fd)
    return count


def _names(fd: int) -> list[str]:
    """Return some names of a directory."""
    with os.scandir(fd) as entries:
        return [entry.name for entry in islice(entries, NAMES_PER_TURN)]
