"""Maps errors of files to gRPC problems."""

from typing import Final

from chatd.content.domain.errors import FileNotFound, FileTooLarge, MediaTypeRefused, TooManyFiles
from chatd.primitives.rpc.errors import violations_of
from parley.rpc import ErrorTable, Problem


def _file_not_found(error: FileNotFound) -> Problem:
    return Problem.of(
        "FILE_NOT_FOUND",
        "There is no such file, or you may not see it; upload it first.",
        {"file_id": error.file_id},
        violations=violations_of(error.problems),
    )


def _too_many_files(error: TooManyFiles) -> Problem:
    return Problem.of(
        "TOO_MANY_FILES",
        f"A chat holds at most {error.files_max} files; start another chat.",
        {"files_max": str(error.files_max)},
    )


def _file_too_large(error: FileTooLarge) -> Problem:
    return Problem.of(
        "FILE_TOO_LARGE",
        f"A file has at most {error.limit_bytes} bytes; send a smaller one.",
        {"limit_bytes": str(error.limit_bytes)},
    )


def _media_type_refused(error: MediaTypeRefused) -> Problem:
    accepted = ", ".join(error.accepted)
    message = (
        f"The bytes of the file are {error.media_type}, not {error.declared}; send it as that."
        if error.declared
        else f"Files of type {error.media_type} are not taken; send one of {accepted}."
    )
    return Problem.of(
        "MEDIA_TYPE_REFUSED",
        message,
        {"media_type": error.media_type},
    )


FILE_ERRORS: Final[ErrorTable] = {
    FileNotFound: _file_not_found,
    TooManyFiles: _too_many_files,
    FileTooLarge: _file_too_large,
    MediaTypeRefused: _media_type_refused,
}
