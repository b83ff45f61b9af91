"""Paths in the arguments of models."""

from typing import Annotated, Final

from msgspec import Meta

from chatd.tools.workspace.arguments import BadArguments

PATH_BYTES_MAX: Final = 4096

FilePath = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=PATH_BYTES_MAX,
        description="The file, relative to the root of the workspace, such as src/app.py.",
    ),
]
DirectoryPath = Annotated[
    str,
    Meta(
        max_length=PATH_BYTES_MAX,
        description="The directory, relative to the root of the workspace; left out: the root.",
    ),
]
Etag = Annotated[
    str,
    Meta(
        max_length=128,
        description="Refuse if the file is not what had this etag, as read_file returned it.",
    ),
]


def checked(path: str, argument: str = "path") -> str:
    """Return a path that can be sent.

    Raises:
        BadArguments: it contains NUL or is too long.
    """
    if "\0" in path or len(path.encode()) > PATH_BYTES_MAX:
        raise BadArguments(
            f"{argument}: no file can have this path", "write it without NUL, shorter"
        )
    return path
