r"""Escapes in JSON that stand for half a character, such as `\ud83d` without its second half.

Programs that cut texts by units of UTF-16, as those in JavaScript do, write them at the end of what
they cut. A reader of JSON refuses the whole text because of one.
"""

import re
from typing import Final

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
#: An escaped backslash, a whole character in two halves, or one half.
_ESCAPE: Final = re.compile(
    rb"\\\\"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_HALF_BYTES: Final = len(rb"\ud83d")
_REPLACEMENT: Final = rb"\ufffd"


def without_halves(text: bytes) -> bytes:
    """Return JSON in which the replacement character stands for each half."""
    if _HALF.search(text) is None:
        return text
    return _ESCAPE.sub(_whole, text)


def _whole(found: re.Match[bytes]) -> bytes:
    escape = found[0]
    return _REPLACEMENT if len(escape) == _HALF_BYTES else escape
