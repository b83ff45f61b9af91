"""Encodes server-sent events."""

from collections.abc import Mapping

import msgspec

RETRY_MS = 2000
# The comment makes proxies that wait for a body forward the headers.
OPENING = b"retry: %d\n: connected\n\n" % RETRY_MS
HEARTBEAT = b": hb\n\n"
#: Events that end a stream; they are sent regardless of the requested types.
ENDING_EVENTS = ("resync", "bye", "error")

_encode = msgspec.json.Encoder().encode


def frame(event: str, document: object, *, cursor: str | None = None) -> bytes:
    """Encode one event as a frame.

    Args:
        event: The event's type.
        document: Its content; encoded as one line of JSON.
        cursor: The reader's position after it. Empty resets the client's last event id; None keeps
            it.

    Raises:
        ValueError: The type or the cursor contains a line break.
    """
    head = f"event: {_one_line(event)}\ndata: "
    if cursor is not None:
        head = f"id: {_one_line(cursor)}\n{head}" if cursor else f"id\n{head}"
    data = _encode(document)
    if b"\n" in data or b"\r" in data:
        raise ValueError("the document is not one line of JSON")
    return b"%b%b\n\n" % (head.encode(), data)


def resync(about: Mapping[str, str]) -> bytes:
    """Return the frame that makes a reader start again without a cursor."""
    return frame("resync", {"type": "resync", **about}, cursor="")


def bye(about: Mapping[str, str]) -> bytes:
    """Return the frame that makes a reader reconnect with its cursor."""
    return frame("bye", {"type": "bye", **about})


def permission_revoked(about: Mapping[str, str]) -> bytes:
    """Return the frame that reports that the reader may no longer read this chat."""
    error = {
        "code": "permission_revoked",
        "message": "This chat is gone, or you may no longer read it.",
        "retryable": False,
    }
    return frame("error", {"type": "error", **about, "error": error})


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text or "\0" in text:
        raise ValueError("a line of an event cannot hold a line break or NUL")
    return text
