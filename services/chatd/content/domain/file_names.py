"""File names as uploaded, made safe to store and to show."""

from typing import Final

NAME_BYTES_MAX: Final = 255
NAMELESS: Final = "file"


def clean_name(name: str) -> str:
    """Return the last path segment without control and invisible characters, in 255 bytes."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = "".join(each for each in last if each.isprintable()).strip()
    cut = clean.encode()[:NAME_BYTES_MAX].decode(errors="ignore").strip()
    return NAMELESS if cut.strip(".") == "" else cut
