"""Snapshots of files: opened safely, described, read whole."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Entry, Root, kind_of
from toolrunner.fileworker.content.detection import etag_of
from toolrunner.fileworker.values import PathInfo

READ_BYTES: Final = 1024 * 1024
#: Larger files are neither compared nor stored for undo.
CONTENT_BYTES_MAX: Final = 16 * 1024 * 1024
#: Larger files have no etag: an upload is at most this large.
HASHED_BYTES_MAX: Final = 1024 * 1024 * 1024
#: Some file systems store any time that is set; times outside of this range cannot be encoded.
MODIFIED_NS_MIN: Final = -(2**63)
MODIFIED_NS_MAX: Final = 2**63 - 1
NO_ETAG: Final = ""

#: Identifies the version of a file that was read.
Identity = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A regular file at one moment; the content is None if it is too large."""

    content: bytes | None
    etag: str
    mode: int
    identity: Identity


def identity_of(result: os.stat_result) -> Identity:
    """Return values that change if a file is replaced or written."""
    return (result.st_dev, result.st_ino, result.st_size, result.st_mtime_ns)


def info_of(path: str, result: os.stat_result, link_target: str = "") -> PathInfo:
    """Return the metadata of a path."""
    kind = kind_of(result.st_mode)
    return PathInfo(
        path=path,
        type=kind,
        size_bytes=result.st_size if kind == "file" else 0,
        mode=stat.S_IMODE(result.st_mode),
        modified_ns=max(MODIFIED_NS_MIN, min(result.st_mtime_ns, MODIFIED_NS_MAX)),
        link_target=link_target,
    )


@contextmanager
def opened_file(root: Root, path: str, *, shown: str) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file for reading in a context; other types are never opened.

    Raises:
        FileRefused: There is none, or it is not a regular file.
    """
    try:
        with root.opened(path, os.O_PATH) as found:
            check_regular(os.fstat(found), shown)
            fd = reopened(found)
    except OSError as error:
        raise errors.refusal_of(error, shown) from error
    try:
        yield fd, os.fstat(fd)
    finally:
        os.close(fd)


def reopened(fd: int) -> int:
    """Open the file of an O_PATH descriptor for reading, whatever its current name.

    Raises:
        OSError: It may not be read.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    return os.open(f"/proc/self/fd/{fd}", flags)


def check_regular(result: os.stat_result, shown: str) -> None:
    """Refuse anything but a regular file."""
    kind = kind_of(result.st_mode)
    if kind == "directory":
        raise errors.wrong_kind(shown, kind, "list it, or name a file in it")
    if kind != "file":
        raise errors.wrong_kind(shown, kind, "only regular files are opened")


def snapshot(place: Entry, *, shown: str) -> Snapshot | None:
    """Read a file, or return None if there is none.

    Raises:
        FileRefused: It is not a regular file, or cannot be read.
    """
    try:
        with place.found() as found:
            check_regular(os.fstat(found), shown)
            fd = reopened(found)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise errors.refusal_of(error, shown) from error
    try:
        result = os.fstat(fd)
        content = read_all(fd, CONTENT_BYTES_MAX)
        etag = (hashed(fd) or _named(result)) if content is None else etag_of(content)
        return Snapshot(content, etag, stat.S_IMODE(result.st_mode), identity_of(result))
    except OSError as error:
        raise errors.refusal_of(error, shown) from error
    finally:
        os.close(fd)


def _named(result: os.stat_result) -> str:
    """Return a substitute etag of a file that is too large to be hashed."""
    return "-".join(f"{part:x}" for part in identity_of(result))


def read_all(fd: int, limit_bytes: int) -> bytes | None:
    """Return the whole content, or None if it is larger; a file may grow while it is read."""
    if os.fstat(fd).st_size > limit_bytes:
        return None
    content = bytearray()
    while chunk := os.read(fd, min(READ_BYTES, limit_bytes + 1 - len(content))):
        content += chunk
        if len(content) > limit_bytes:
            return None
    return bytes(content)


def hashed(fd: int, limit_bytes: int = HASHED_BYTES_MAX) -> str:
    """Return the etag of a content without keeping it; empty if it is larger than the limit."""
    if os.fstat(fd).st_size > limit_bytes:
        return NO_ETAG
    sha256, size = hashlib.sha256(), 0
    os.lseek(fd, 0, os.SEEK_SET)
    while chunk := os.read(fd, READ_BYTES):
        sha256.update(chunk)
        size += len(chunk)
        if size > limit_bytes:
            return NO_ETAG
    return sha256.hexdigest()
