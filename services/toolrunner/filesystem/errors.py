"""Refused file operations: one error, with a closed set of reasons."""

import errno
import os
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """The reason; names are those of the proto's ErrorReason."""

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
        reason: The reason.
        metadata: Its details, under the names that the proto defines.
    """

    def __init__(self, reason: Reason, text: str, **metadata: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.metadata = metadata


class PlanUnknown(Exception):
    """A plan or an upload was requested from a file worker that has exited since."""


_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})

#: Names of kinds for messages, where the name alone is unclear.
_KINDS: Final = {"special": "pipe, a socket or a device"}


def not_found(path: str, suggestions: tuple[str, ...] = ()) -> FileRefused:
    """Return the error for a missing path."""
    meant = f"; did you mean {', '.join(map(repr, suggestions))}?" if suggestions else ""
    text = f"there is no {path!r} in the workspace{meant or '; list its directory to see names'}"
    return FileRefused(Reason.PATH_NOT_FOUND, text, path=path, suggestions="\n".join(suggestions))


def outside(path: str) -> FileRefused:
    """Return the error for a path that leads out of the workspace."""
    text = f"{path!r} leads out of the workspace; name a path inside it"
    return FileRefused(Reason.OUTSIDE_WORKSPACE, text, path=path)


def wrong_kind(path: str, kind: str, remedy: str) -> FileRefused:
    """Return the error for a path of another kind."""
    text = f"{path!r} is a {_KINDS.get(kind, kind)}; {remedy}"
    return FileRefused(Reason.WRONG_PATH_KIND, text, path=path, kind=kind)


def changed(path: str, etag: str) -> FileRefused:
    """Return the error for a file that has changed."""
    text = f"{path!r} has changed since it was read; read it again and repeat the change"
    return FileRefused(Reason.FILE_CHANGED, text, path=path, etag=etag)


def exists(path: str) -> FileRefused:
    """Return the error for a path that exists already."""
    text = f"{path!r} exists already; choose another path, or ask to replace it"
    return FileRefused(Reason.PATH_EXISTS, text, path=path)


def forbidden(path: str, why: str) -> FileRefused:
    """Return the error for a path that may not be read or written."""
    text = f"{path!r} may not be used ({why}); choose another path"
    return FileRefused(Reason.PATH_FORBIDDEN, text, path=path)


def too_large(path: str, size_bytes: int, limit_bytes: int) -> FileRefused:
    """Return the error for a file that is too large."""
    text = f"{path!r} has {size_bytes} bytes and at most {limit_bytes} are allowed; use a command"
    sizes = {"size_bytes": str(size_bytes), "limit_bytes": str(limit_bytes)}
    return FileRefused(Reason.FILE_TOO_LARGE, text, **sizes)


def relative_path_of(error: OSError) -> str:
    """Return the path that an error names; empty for an absolute one, which is the node's."""
    path = error.filename
    return path if isinstance(path, str) and not path.startswith("/") else ""


def refusal_of(error: OSError, path: str) -> FileRefused:
    """Return the error for an errno at a path."""
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
