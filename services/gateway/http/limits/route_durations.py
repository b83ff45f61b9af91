"""How long requests of each route may take: all that are not named here are brief."""

from collections.abc import Mapping
from typing import Final

from gateway.http.limits.admission import Duration

_API: Final = "/api/v1"
_CHAT: Final = f"{_API}/chats/{{chat_id}}"
_PROCESS: Final = f"{_CHAT}/processes/{{process_id}}"
_WORKSPACE: Final = f"{_API}/workspaces/{{workspace_id}}"

#: Method and path -> how long a request may take.
DURATIONS: Final[Mapping[tuple[str, str], Duration]] = {
    ("GET", f"{_CHAT}/events"): Duration.STREAM,
    ("GET", f"{_API}/events"): Duration.STREAM,
    ("GET", f"{_CHAT}/git/events"): Duration.LASTING,
    ("GET", f"{_WORKSPACE}/events"): Duration.LASTING,
    ("GET", f"{_PROCESS}/output"): Duration.LASTING,
    ("GET", f"{_PROCESS}/terminal"): Duration.LASTING,
    ("GET", f"{_WORKSPACE}/terminal"): Duration.LASTING,
    ("GET", f"{_WORKSPACE}/processes/{{process_id}}/terminal"): Duration.LASTING,
    ("GET", f"{_CHAT}/files/content"): Duration.LASTING,
    ("GET", f"{_CHAT}/export"): Duration.LASTING,
    ("POST", f"{_CHAT}/checkpoints"): Duration.LASTING,
    ("POST", f"{_CHAT}/checkpoints/restore"): Duration.LASTING,
    ("POST", f"{_WORKSPACE}/merge"): Duration.LASTING,
    ("POST", f"{_API}/files"): Duration.LASTING,
    ("GET", f"{_API}/files/{{file_id}}"): Duration.LASTING,
}


def duration_of(method: str, path: str) -> Duration:
    """Return how long a request of a route may take."""
    return DURATIONS.get((method, path), Duration.BRIEF)
