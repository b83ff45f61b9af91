"""Errors of files and their media types."""

from collections.abc import Sequence

from chatd.primitives.domain.errors import ChatError

NO_FILE = "names no file of yours; upload it first"


class FileNotFound(ChatError):
    """There is no such file for this caller.

    Attributes:
        file_id: The file, or the first of several.
        problems: The problems of the request fields that name unknown files, if those are known.
    """

    def __init__(self, file_id: str, fields: Sequence[str] = ()) -> None:
        super().__init__(f"no file {file_id}; upload it first")
        self.file_id = file_id
        self.problems = dict.fromkeys(fields, NO_FILE)


class TooManyFiles(ChatError):
    """The chat would hold more files than allowed."""

    def __init__(self, files_max: int) -> None:
        super().__init__(f"a chat holds at most {files_max} files; start another one")
        self.files_max = files_max


class FileTooLarge(ChatError):
    """The file is larger than allowed."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"a file has at most {limit_bytes} bytes; send a smaller one")
        self.limit_bytes = limit_bytes


class MediaTypeRefused(ChatError):
    """The file's type is not accepted, or differs from the declared one."""

    def __init__(self, media_type: str, accepted: tuple[str, ...], declared: str = "") -> None:
        is_another = f"its bytes are {media_type}, not {declared}"
        is_refused = f"{media_type} is not taken; send one of {', '.join(accepted)}"
        super().__init__(is_another if declared else is_refused)
        self.media_type = media_type
        self.accepted = accepted
        self.declared = declared
