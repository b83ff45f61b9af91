"""The form of server-sent events: from an event to the bytes of its frame, and nothing else."""

from collections.abc import Mapping

import msgspec

RETRY_MS = 2000
# The comment makes proxies that wait for a body pass the headers on.
OPENING = b"retry: %d\n: connected\n\n" % RETRY_MS
HEARTBEAT = b": hb\n\n"
#: Events by which a stream ends; they are sent whichever types a client asks for.
ENDING_EVENTS = ("resync", "bye", "error")

_encode = msgspec.json.Encoder().encode


def frame(event: str, document: object, *, cursor: str | None = None) -> bytes:
    """Return the frame of one event.

    Args:
        event: The event's type.
        document: What it says; becomes one line of JSON.
        cursor: Where a reader stands after it. Empty forgets what the reader had; None keeps it.

    Raises:
        ValueError: The type or the cursor would break out of its line.
    """
    head = f"event: {_one_line(event)}\ndata: "
    if cursor is not None:
        head = f"id: {_one_line(cursor)}\n{head}" if cursor else f"id\n{head}"
    data = _encode(document)
    if b"\n" in data or b"\r" in data:
        raise ValueError("the document is not one line of JSON")
    return b"%b%b\n\n" % (head.encode(), data)


def resync(about: Mapping[str, str]) -> bytes:
    """Return the frame that tells a reader to begin anew, without a cursor."""
    return frame("resync", {"type": "resync", **about}, cursor="")


def bye(about: Mapping[str, str]) -> bytes:
    """Return the frame that tells a reader to come back with the cursor it has."""
    return frame("bye", {"type": "bye", **about})


def permission_revoked(about: Mapping[str, str]) -> bytes:
    """Return the frame that tells a reader that this chat is none of theirs any more."""
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
