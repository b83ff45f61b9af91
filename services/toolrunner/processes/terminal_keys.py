"""Terminal keys by name, as the bytes that they send."""

import string
from collections.abc import Iterable
from typing import Final

from toolrunner.primitives.errors import InvalidRequest

ESCAPE: Final = b"\x1b"

KEYS: Final = {
    "enter": b"\r",
    "return": b"\r",
    "tab": b"\t",
    "shift-tab": b"\x1b[Z",
    "space": b" ",
    "backspace": b"\x7f",
    "escape": ESCAPE,
    "esc": ESCAPE,
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "insert": b"\x1b[2~",
    "delete": b"\x1b[3~",
    "page-up": b"\x1b[5~",
    "page-down": b"\x1b[6~",
    "f1": b"\x1bOP",
    "f2": b"\x1bOQ",
    "f3": b"\x1bOR",
    "f4": b"\x1bOS",
    "f5": b"\x1b[15~",
    "f6": b"\x1b[17~",
    "f7": b"\x1b[18~",
    "f8": b"\x1b[19~",
    "f9": b"\x1b[20~",
    "f10": b"\x1b[21~",
    "f11": b"\x1b[23~",
    "f12": b"\x1b[24~",
    "ctrl-space": b"\x00",
    "ctrl-@": b"\x00",
    "ctrl-[": ESCAPE,
    "ctrl-\\": b"\x1c",
    "ctrl-]": b"\x1d",
    "ctrl-^": b"\x1e",
    "ctrl-_": b"\x1f",
    **{f"ctrl-{letter}": bytes([ord(letter) - 96]) for letter in string.ascii_lowercase},
}


def bytes_of_keys(names: Iterable[str]) -> bytes:
    """Return the bytes of keys; `alt-` before a name or a character sends an escape first.

    Raises:
        InvalidRequest: One is not a key name.
    """
    return b"".join(map(_bytes_of, names))


def _bytes_of(name: str) -> bytes:
    spelled = name.strip().lower().replace("+", "-")
    if spelled in KEYS:
        return KEYS[spelled]
    base = name.strip()[len("alt-") :]
    if spelled.startswith("alt-") and base:
        return ESCAPE + (base.encode() if len(base) == 1 else _bytes_of(base))
    known = "enter, tab, escape, backspace, up, page-down, f1, ctrl-c or alt-x"
    raise InvalidRequest("keys", f"has {name[:40]!r}, which is none; name keys as in {known}")
