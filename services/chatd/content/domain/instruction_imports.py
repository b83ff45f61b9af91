"""Other files that an instruction file imports with `@path`."""

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from chatd.content.domain.instructions import HOME_PREFIX

IMPORTS_MAX: Final = 20
PATH_CHARACTERS_MAX: Final = 300
#: File systems have no longer names of files and directories.
NAME_BYTES_MAX: Final = 255
#: A path of a text behind an at sign that begins a word, so that addresses and mentions are none.
_IMPORT: Final = re.compile(r"(?:^|(?<=[\s(]))@((?:~/)?[\w.+/-]+\.(?:md|mdc|txt))(?=[\s).,;:]|$)")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_CODE: Final = re.compile(r"`[^`]*`")


def imported_paths(path: str, content: str) -> tuple[str, ...]:
    """Return the files that an instruction file imports, each once, in their order.

    Paths are relative to the file; those that would lead out of the workspace or the home are left
    out, and so are hidden ones of the home, and those that are too long for a file.

    Args:
        path: The file, with the prefix of the home if it is there.
        content: Its text; imports in code are none.
    """
    directory = posixpath.dirname(path)
    found: dict[str, None] = {}
    for line in _prose(content):
        for named in _IMPORT.findall(line):
            is_of_home = named.startswith(HOME_PREFIX)
            joined = named if is_of_home else posixpath.join(directory, named)
            if (inside := _inside(joined)) and inside != path:
                found[inside] = None
    return tuple(found)


def _inside(path: str) -> str:
    """Return a path without detours; empty if it leads out, is hidden or is too long."""
    is_of_home = path.startswith(HOME_PREFIX)
    plain = posixpath.normpath(path.removeprefix(HOME_PREFIX))
    parts = plain.split("/")
    is_outside = plain.startswith("/") or ".." in parts
    is_hidden = is_of_home and any(part.startswith(".") for part in parts)
    is_long = any(len(part.encode()) > NAME_BYTES_MAX for part in parts)
    if is_outside or is_hidden or is_long or len(plain) > PATH_CHARACTERS_MAX:
        return ""
    return f"{HOME_PREFIX}{plain}" if is_of_home else plain


def _prose(content: str) -> Iterator[str]:
    """Yield the lines that are not code, without code in them."""
    is_code = False
    for line in content.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield _CODE.sub("", line)
