"""Uploaded files: media types by their bytes, and safe names."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

import msgspec

from chatd.content.domain.errors import FileTooLarge, MediaTypeRefused
from chatd.primitives.domain.errors import InvalidRequest

FILE_BYTES_MAX: Final = 10 * 1024 * 1024

JSON: Final = "application/json"
PLAIN: Final = "text/plain"
UNKNOWN: Final = "application/octet-stream"

#: Types that users may upload.
ACCEPTED: Final = frozenset(
    {
        JSON,
        "application/pdf",
        "image/gif",
        "image/jpeg",
        "image/png",
        "image/webp",
        "text/csv",
        "text/markdown",
        PLAIN,
    }
)
#: Text types that cannot be detected from the bytes alone.
TEXTS: Final = frozenset({JSON, "text/csv", "text/markdown", PLAIN})
_BY_SUFFIX: Final[Mapping[str, str]] = {
    ".csv": "text/csv",
    ".json": JSON,
    ".markdown": "text/markdown",
    ".md": "text/markdown",
}
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
# Comments, declarations and document types may precede the first element. The group is atomic, so
# the match does not backtrack, however many comments there are.
_MARKUP: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>(?:\s+|<\?.*?\?>|<!--.*?-->|<!doctype\s+svg[^>]*>)*)"
    rb"<(?:(?P<svg>svg)|!doctype\s+html|html|head|body|script|iframe)(?![\w.-])",
    re.IGNORECASE | re.DOTALL,
)

NAME_BYTES_MAX: Final = 255
NAMELESS: Final = "file"


def sniffed(name: str, data: bytes) -> str:
    """Return the detected media type of a file."""
    for magic, media_type in _MAGIC:
        if data.startswith(magic):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if _BINARY.search(data):
        return UNKNOWN
    if markup := _MARKUP.match(data[:16_384]):
        return "image/svg+xml" if markup["svg"] else "text/html"
    refined = _BY_SUFFIX.get(PurePosixPath(name).suffix.lower(), PLAIN)
    return PLAIN if refined == JSON and not _is_json(data) else refined


def confirmed(declared: str, name: str, data: bytes) -> str:
    """Return the media type of an upload; an empty `declared` accepts the detected type.

    Raises:
        InvalidRequest: there are no bytes.
        FileTooLarge: there are too many.
        MediaTypeRefused: its type is not accepted, or the bytes are of another type.
    """
    if not data:
        raise InvalidRequest("chunk", "the file is empty; send its bytes")
    if len(data) > FILE_BYTES_MAX:
        raise FileTooLarge(FILE_BYTES_MAX)
    said = declared.partition(";")[0].strip().lower()
    found = sniffed(name, data)
    if said not in ("", UNKNOWN, *ACCEPTED):
        raise MediaTypeRefused(said, tuple(sorted(ACCEPTED)))
    if found not in ACCEPTED:
        raise MediaTypeRefused(found, tuple(sorted(ACCEPTED)))
    if said in ("", UNKNOWN, PLAIN) and found in TEXTS:
        return found
    if said in ("", UNKNOWN, found):
        return found
    if said in TEXTS and found in TEXTS and (said != JSON or _is_json(data)):
        return said
    raise MediaTypeRefused(found, tuple(sorted(ACCEPTED)), declared=said)


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def clean_name(name: str) -> str:
    """Return the last path segment without control and invisible characters, in 255 bytes."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = "".join(each for each in last if each.isprintable()).strip()
    cut = clean.encode()[:NAME_BYTES_MAX].decode(errors="ignore").strip()
    return NAMELESS if cut.strip(".") == "" else cut
