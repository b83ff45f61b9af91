"""HTTP headers of files: names, content types, disposition and ranges."""

import re
from dataclasses import dataclass
from email.message import Message
from typing import Final
from urllib.parse import quote

from gateway.http.problems.errors import HttpProblem

#: Types that a browser may show inline; none of them can contain active content.
SHOWN_INLINE: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
#: Types that are returned unchanged; all others are served as bytes.
TOLD: Final = SHOWN_INLINE | {
    "application/json",
    "application/pdf",
    "text/csv",
    "text/markdown",
    "text/plain",
}
BYTES: Final = "application/octet-stream"

_UNQUOTABLE = re.compile(r"[^ !#-\[\]-~]|%")
_RANGE = re.compile(r"bytes=(\d{1,18})?-(\d{1,18})?")


@dataclass(frozen=True, slots=True)
class Span:
    """A byte range of a file, given by its first byte and its length."""

    first: int
    length: int

    def of(self, size_bytes: int) -> str:
        """Format it as the value of a Content-Range."""
        return f"bytes {self.first}-{self.first + self.length - 1}/{size_bytes}"


def served_media_type(media_type: str) -> str:
    """Return the Content-Type with which a file may be served."""
    return media_type if media_type in TOLD else BYTES


def disposition(name: str, media_type: str) -> str:
    """Return the Content-Disposition of a file, with an ASCII and a UTF-8 file name."""
    manner = "inline" if media_type in SHOWN_INLINE else "attachment"
    plain = _UNQUOTABLE.sub("_", name)
    return f"{manner}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def name_in(header: str) -> str:
    """Return the file name of a Content-Disposition; empty if there is none that can be parsed."""
    message = Message()
    # Headers are decoded as Latin-1, whatever encoding the client used.
    message["content-disposition"] = header.encode("latin-1").decode("utf-8", "replace")
    try:
        name = message.get_filename("")
    except (ValueError, LookupError, TypeError):
        # Encodings that cannot decode the name, and continuations without an order.
        return ""
    # The header may name an encoding that decodes to unpaired surrogates.
    return name.encode("utf-8", "replace").decode()


def requested_span(header: str, size_bytes: int) -> Span | None:
    """Return the bytes that a Range requests; None for all, or if it is not a single range.

    Raises:
        HttpProblem: The file has no such bytes (416).
    """
    found = _RANGE.fullmatch(header.strip())
    if found is None or found[1] is found[2] is None:
        return None
    if found[1] is None:
        length = min(int(found[2]), size_bytes)
        first, last = size_bytes - length, size_bytes - 1
    else:
        first = int(found[1])
        last = size_bytes - 1 if found[2] is None else min(int(found[2]), size_bytes - 1)
        if found[2] is not None and int(found[2]) < first:
            return None
    if first > last:
        raise HttpProblem.of(
            "RANGE_NOT_SATISFIABLE",
            f"The file has {size_bytes} bytes; ask for some of them.",
            headers={"content-range": f"bytes */{size_bytes}"},
            facts={"size_bytes": size_bytes},
        )
    return Span(first, last - first + 1)
