"""The duration classes of routes that no proto declares; those not listed are short."""

from collections.abc import Mapping
from typing import Final

from gateway.http.limits.admission import Duration

_API: Final = "/api/v1"
_CHAT: Final = f"{_API}/chats/{{chat_id}}"

#: Method and path -> duration class.
DURATIONS: Final[Mapping[tuple[str, str], Duration]] = {
    ("GET", f"{_CHAT}/events"): Duration.STREAM,
    ("GET", f"{_API}/events"): Duration.STREAM,
    ("POST", f"{_API}/files"): Duration.LONG_RUNNING,
    ("GET", f"{_API}/files/{{file_id}}"): Duration.LONG_RUNNING,
}


def duration_of(method: str, path: str) -> Duration:
    """Return the duration class of a route."""
    return DURATIONS.get((method, path), Duration.SHORT)
