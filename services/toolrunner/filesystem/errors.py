"""Why something asked of files is refused: one error, with a closed set of reasons."""

import errno
import os
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """What speaks against it; names are those of the proto's ErrorReason."""

    INVALID_REQUEST = "INVALID_REQUEST"
    PATH_NOT_FOUND = "PATH_NOT_FOUND"
    OUTSIDE_WORKSPACE = "OUTSIDE_WORKSPACE"
    PATH_FORBIDDEN = "PATH_FORBIDDEN"
    WRONG_PATH_KIND = "WRONG_PATH_KIND"
    FILE_CHANGED = "FILE_CHANGED"
    PATH_EXISTS = "PATH_EXISTS"
    PAST_END = "PAST_END"
    NOTHING_TO_UNDO = "NOTHING_TO_UNDO"
    INVALID_PATTERN = "INVALID_PATTERN"
    FILE_TOO_LARGE = "FILE_TOO_LARGE"
    NODE_FULL = "NODE_FULL"
    NOT_A_REPOSITORY = "NOT_A_REPOSITORY"
    CHECKPOINT_NOT_FOUND = "CHECKPOINT_NOT_FOUND"
    GIT_FAILED = "GIT_FAILED"


class FileRefused(Exception):
    """Nothing was changed, or nothing can be read; the text says what to do.

    Attributes:
        reason: What speaks against it.
        metadata: Its details, under the names that the proto states.
    """

    def __init__(self, reason: Reason, text: str, **metadata: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.metadata = metadata


class PlanUnknown(Exception):
    """What was planned or begun to arrive was asked of a program that has ended since."""


_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})

#: What a kind is called where its name alone says too little.
_KINDS: Final = {"special": "pipe, a socket or a device"}


def not_found(path: str, suggestions: tuple[str, ...] = ()) -> FileRefused:
    """Return that there is nothing at a path."""
    meant = f"; did you mean {', '.join(map(repr, suggestions))}?" if suggestions else ""
    text = f"there is no {path!r} in the workspace{meant or '; list its directory to see names'}"
    return FileRefused(Reason.PATH_NOT_FOUND, text, path=path, suggestions="\n".join(suggestions))


def outside(path: str) -> FileRefused:
    """Return that a path leads out of the workspace."""
    text = f"{path!r} leads out of the workspace; name a path inside it"
    return FileRefused(Reason.OUTSIDE_WORKSPACE, text, path=path)


def wrong_kind(path: str, kind: str, remedy: str) -> FileRefused:
    """Return that something else is at a path."""
    text = f"{path!r} is a {_KINDS.get(kind, kind)}; {remedy}"
    return FileRefused(Reason.WRONG_PATH_KIND, text, path=path, kind=kind)


def changed(path: str, etag: str) -> FileRefused:
    """Return that a file is not what it was."""
    text = f"{path!r} has changed since it was read; read it again and repeat the change"
    return FileRefused(Reason.FILE_CHANGED, text, path=path, etag=etag)


def exists(path: str) -> FileRefused:
    """Return that there is something at a path already."""
    text = f"{path!r} exists already; choose another path, or ask to replace it"
    return FileRefused(Reason.PATH_EXISTS, text, path=path)


def forbidden(path: str, why: str) -> FileRefused:
    """Return that a path may not be read or written."""
    text = f"{path!r} may not be used ({why}); choose another path"
    return FileRefused(Reason.PATH_FORBIDDEN, text, path=path)


def too_large(path: str, size_bytes: int, limit_bytes: int) -> FileRefused:
    """Return that a file has more bytes than can be worked on."""
    text = f"{path!r} has {size_bytes} bytes and at most {limit_bytes} are allowed; use a command"
    sizes = {"size_bytes": str(size_bytes), "limit_bytes": str(limit_bytes)}
    return FileRefused(Reason.FILE_TOO_LARGE, text, **sizes)


def refusal_of(error: OSError, path: str) -> FileRefused:
    """Return what the kernel's answer means for a path."""
    match error.errno:
        case errno.ENOENT:
            return not_found(path)
        case errno.ENOTDIR:
            return wrong_kind(path, "file", "what is above its last name is no directory")
        case errno.EISDIR:
            return wrong_kind(path, "directory", "name a file in it")
        case errno.EEXIST | errno.ENOTEMPTY:
            return exists(path)
        case errno.ENAMETOOLONG:
            return FileRefused(Reason.INVALID_REQUEST, "a name is too long", field="path")
        case errno.EXDEV:
            return outside(path)
        case errno.ELOOP:
            text = f"{path!r} leads through a link that may not be followed, or in a circle"
            return FileRefused(Reason.OUTSIDE_WORKSPACE, f"{text}; name another", path=path)
        case number if number in _FULL:
            text = f"{path!r} cannot be written: {error.strerror}; make room first"
            return FileRefused(Reason.NODE_FULL, text, resource="disk")
        case _:
            return forbidden(path, error.strerror or os.strerror(error.errno or 0))
