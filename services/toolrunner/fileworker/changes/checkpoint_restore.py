"""Restore of entries from a checkpoint, one by one; none is touched that has changed."""

import os
import stat
from collections.abc import Generator
from contextlib import suppress

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import DIRECTORY_MODE, Entry, Root
from toolrunner.fileworker.changes.commit import (
    NEW_FILE_MODE,
    put_in_place,
    staged_name,
    write_staged,
)
from toolrunner.fileworker.changes.entries import etag_at, remove_entry
from toolrunner.fileworker.changes.git_guard import GitGuard
from toolrunner.fileworker.content.snapshot import snapshot
from toolrunner.fileworker.jobs import PAUSE, Pause
from toolrunner.fileworker.protocol import EntriesRestored, EntryToRestore, RestoreEntries

RESTORED = "restored"
CONFLICT = "conflict"
FAILED = "failed"

_FORMATS = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "link": stat.S_IFLNK}
STEPS_PER_TURN = 50


class _Changed(Exception):
    """Something else is at the path."""


def restore_entries(root: Root, request: RestoreEntries) -> Generator[Pause, None, EntriesRestored]:
    """Restore entries; return what became of each."""
    outcomes = []
    for number, wanted in enumerate(request.entries, start=1):
        outcomes.append(_restored(root, wanted, request))
        if number % STEPS_PER_TURN == 0:
            yield PAUSE
    return EntriesRestored(tuple(outcomes))


def _restored(root: Root, wanted: EntryToRestore, request: RestoreEntries) -> str:
    path = os.fsdecode(wanted.path)
    try:
        GitGuard(root, True).check_path(path, path)
        if not request.is_removing and (above := path.rpartition("/")[0]):
            root.make_directories(above)
        with root.real_entry(path) as entry:
            if request.is_removing:
                _remove(entry, wanted)
            else:
                _put(entry, wanted, request.token)
            os.fsync(entry.directory_fd)
        return RESTORED
    except _Changed:
        return CONFLICT
    except (FileNotFoundError, NotADirectoryError):
        # Its directory is gone, and so is the entry.
        return RESTORED if request.is_removing else FAILED
    except errors.FileRefused as refused:
        return CONFLICT if refused.reason is errors.Reason.FILE_CHANGED else FAILED
    except OSError:
        return FAILED


def _remove(entry: Entry, wanted: EntryToRestore) -> None:
    """Remove an entry that shall be gone or have another type."""
    kind, etag = _found(entry)
    if not kind or _is_target(kind, etag, wanted):
        return
    if (kind, etag) != (wanted.found_kind, wanted.found_etag):
        raise _Changed
    if kind == "directory":
        try:
            os.rmdir(entry.name, dir_fd=entry.directory_fd)
        except OSError as error:
            # Files in it that no checkpoint knows belong to somebody else.
            raise _Changed from error
    else:
        remove_entry(entry)


def _put(entry: Entry, wanted: EntryToRestore, token: str) -> None:
    kind, etag = _found(entry)
    is_replaced = wanted.found_kind == wanted.kind
    if not _is_target(kind, etag, wanted):
        if kind and not (is_replaced and (kind, etag) == (wanted.found_kind, wanted.found_etag)):
            raise _Changed
        if is_replaced and not kind:
            # It was deleted meanwhile.
            raise _Changed
        _write(entry, wanted, token, is_new=not kind)
    if wanted.mode >= 0 and wanted.kind != "link":
        with entry.found() as fd:
            os.chmod(f"/proc/self/fd/{fd}", wanted.mode)


def _write(entry: Entry, wanted: EntryToRestore, token: str, *, is_new: bool) -> None:
    if wanted.kind == "directory":
        os.mkdir(entry.name, DIRECTORY_MODE, dir_fd=entry.directory_fd)
        return
    if wanted.kind == "link":
        if not is_new:
            os.unlink(entry.name, dir_fd=entry.directory_fd)
        os.symlink(wanted.content, os.fsencode(entry.name), dir_fd=entry.directory_fd)
        return
    before = None if is_new else snapshot(entry, shown=entry.path)
    if before is not None and before.etag != wanted.found_etag:
        raise _Changed
    staged = staged_name(token)
    with suppress(FileNotFoundError):
        os.unlink(staged, dir_fd=entry.directory_fd)
    try:
        mode = wanted.mode if wanted.mode >= 0 else NEW_FILE_MODE
        write_staged(entry, staged, wanted.content, before, mode)
        put_in_place(entry, staged, before, entry.path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(staged, dir_fd=entry.directory_fd)


def _found(entry: Entry) -> tuple[str, str]:
    """Return the type and the etag of the entry that is there; both empty for none."""
    there = entry.lstat()
    if there is None:
        return "", ""
    kind = next(
        (name for name, each in _FORMATS.items() if stat.S_IFMT(there.st_mode) == each), "special"
    )
    return kind, etag_at(entry) or ""


def _is_target(kind: str, etag: str, wanted: EntryToRestore) -> bool:
    return (kind, etag) == (wanted.kind, wanted.etag)
