"""The undo store: previous contents of files, on disk before a change, so that it can be undone."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from toolrunner.fileworker.values import Image

PENDING: Final = ".pending"
DONE: Final = ".done"
UNDONE: Final = ".undone"
SUFFIXES: Final = (PENDING, DONE, UNDONE)
RECORDS_MAX: Final = 200
BYTES_MAX: Final = 256 * 1024 * 1024


class Undone(msgspec.Struct, frozen=True):
    """The files of an earlier change that a change undoes."""

    sequence: int
    paths: tuple[str, ...]


class UndoRecord(msgspec.Struct, frozen=True):
    """One change.

    Attributes:
        sequence: Its number among the changes of the workspace.
        token: Identifies the change to the file worker.
        request_id: The request that it was made for.
        chat_id: The chat that requested it; empty for a user.
        images: The files.
        file_worker_id: Process mark of the file worker that makes it.
        undone: What it undoes; None unless it is an undo, which cannot be undone itself.
    """

    sequence: int
    token: str
    request_id: str
    chat_id: str
    images: tuple[Image, ...]
    file_worker_id: str = msgspec.field(default="", name="clerk_id")
    undone: Undone | None = None


class UndoStore:
    """The changes of one workspace, in files; for one thread at a time.

    A pending one was begun and not finished: after a crash it has to be rolled back. It is finished
    in one step, by a rename; the follow-up work is done at the next access, so that a crash in
    between loses nothing.
    """

    def __init__(self, directory: Path, *, records_max: int = RECORDS_MAX) -> None:
        self._directory = directory
        self._records_max = records_max

    def begin(
        self,
        *,
        token: str,
        request_id: str,
        chat_id: str,
        images: tuple[Image, ...],
        file_worker_id: str = "",
        undone: Undone | None = None,
    ) -> UndoRecord:
        """Store a change durably before it is made."""
        sequence = max((_sequence(path) for path in self._paths()), default=0) + 1
        record = UndoRecord(sequence, token, request_id, chat_id, images, file_worker_id, undone)
        self._write(record, PENDING)
        return record

    def finish(self, record: UndoRecord) -> None:
        """Mark a change as made."""
        suffix = DONE if record.undone is None else UNDONE
        self._path(record, PENDING).rename(self._path(record, suffix))
        self._sync()
        self._settle()
        self._prune()

    def drop(self, record: UndoRecord) -> None:
        """Delete a change."""
        for suffix in SUFFIXES:
            self._path(record, suffix).unlink(missing_ok=True)
        self._sync()

    def pending(self) -> list[UndoRecord]:
        """Return the changes that were not finished, newest first."""
        self._settle()
        return list(self._records(PENDING))

    def by_request(self, request_id: str, chat_id: str) -> UndoRecord | None:
        """Return the change that a request made; a user may name those of all chats."""
        for record in self._records(DONE):
            if record.request_id == request_id and chat_id in ("", record.chat_id):
                return record
        return None

    def by_path(self, path: str, chat_id: str) -> UndoRecord | None:
        """Return the last change that a chat made to a file."""
        for record in self._records(DONE):
            if record.chat_id == chat_id and any(image.belongs_to(path) for image in record.images):
                return record
        return None

    def _settle(self) -> None:
        """Delete undone changes, and then their undo records."""
        for undoing in list(self._records(UNDONE)):
            if undoing.undone is not None:
                self._reduce(undoing.undone)
            self.drop(undoing)

    def _reduce(self, undone: Undone) -> None:
        record = _read(self._directory / f"{undone.sequence}{DONE}")
        if record is None:
            return
        rest = tuple(image for image in record.images if image.path not in undone.paths)
        if rest:
            self._write(msgspec.structs.replace(record, images=rest), DONE)
        else:
            self.drop(record)

    def _records(self, suffix: str) -> Iterator[UndoRecord]:
        for path in sorted(self._paths(), key=_sequence, reverse=True):
            if path.suffix == suffix and (record := _read(path)) is not None:
                yield record

    def _paths(self) -> list[Path]:
        return [path for path in self._directory.iterdir() if path.suffix in SUFFIXES]

    def _path(self, record: UndoRecord, suffix: str) -> Path:
        return self._directory / f"{record.sequence}{suffix}"

    def _write(self, record: UndoRecord, suffix: str) -> None:
        staged = self._directory / f"{record.sequence}.tmp"
        fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.msgpack.encode(record))
            file.flush()
            os.fsync(file.fileno())
        staged.rename(self._path(record, suffix))
        self._sync()

    def _sync(self) -> None:
        fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _prune(self) -> None:
        size = 0
        done = [path for path in self._paths() if path.suffix == DONE]
        for count, path in enumerate(sorted(done, key=_sequence, reverse=True), start=1):
            size += path.stat().st_size
            if count > self._records_max or size > BYTES_MAX:
                path.unlink(missing_ok=True)


def _read(path: Path) -> UndoRecord | None:
    with suppress(msgspec.DecodeError, FileNotFoundError):
        return msgspec.msgpack.decode(path.read_bytes(), type=UndoRecord)
    return None


def _sequence(path: Path) -> int:
    return int(path.stem)
