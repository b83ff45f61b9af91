"""Server-sent events: parsing, and a stream that reconnects when its connection is lost."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

from parley.cli.api.client import Api, ApiRefused, Unreachable
from parley.cli.errors import TimedOut

#: The server sends something at least every 15 s; after three times that the connection is dead.
SILENCE_S_MAX = 45.0
RETRY_S = 0.5
RETRY_S_MAX = 10.0
#: How long a server may be unreachable before following it ends.
AWAY_S_MAX = 60.0


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event as the server sent it."""

    type: str
    data: dict[str, Any]
    #: Where to resume after this event.
    cursor: str | None = None


def events(lines: Iterable[bytes]) -> Iterator[ServerEvent]:
    """Parse the lines of a stream into events; an incomplete event at its end is dropped."""
    kind, cursor, data = "message", None, list[str]()
    for raw in lines:
        line = raw.decode(errors="replace").rstrip("\r\n")
        if not line:
            if data:
                yield ServerEvent(kind, _decoded("\n".join(data)), cursor)
            kind, data = "message", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                kind = value
            case "data":
                data.append(value)
            case "id":
                cursor = value
            case _:
                # A comment, a retry hint, or an unknown field.
                continue


def follow(
    api: Api,
    path: str | Callable[[], str],
    *,
    deadline: float,
    pause: Callable[[float], object],
    cursor: str | None = None,
) -> Iterator[ServerEvent]:
    """Yield the events of the stream at `path`, resuming it whenever it breaks.

    Args:
        api: The server.
        path: The stream on it, or what returns it each time that it is opened.
        deadline: The `time.monotonic` at which to stop.
        pause: Sleeps that many seconds.
        cursor: Where to begin; None for the beginning.

    Raises:
        TimedOut: the deadline passed.
        Unreachable: the server was unreachable for too long.
        ApiRefused: the server refuses the stream.
    """
    heard_at = monotonic()
    while True:
        pause_s = RETRY_S
        headers = {} if cursor is None else {"Last-Event-ID": cursor}
        try:
            open_s = max(0.01, min(SILENCE_S_MAX, deadline - monotonic()))
            at = path if isinstance(path, str) else path()
            with api.stream(at, headers, open_s=open_s) as (response, opened):
                for event in events(_lines(response, opened, deadline)):
                    heard_at = monotonic()
                    # The server cannot resume from this cursor.
                    cursor = None if event.type == "resync" else event.cursor or cursor
                    if event.type != "bye":
                        yield event
                    if event.type in ("resync", "bye"):
                        break
        except (Unreachable, ApiRefused) as error:
            if isinstance(error, ApiRefused):
                if error.status not in (429, 502, 503, 504):
                    raise
                pause_s = max(RETRY_S, min(error.retry_after_s or 0.0, RETRY_S_MAX))
            if monotonic() - heard_at > AWAY_S_MAX:
                raise
        if monotonic() >= deadline:
            raise TimedOut("the time given with --timeout is over")
        pause(min(pause_s, max(0.0, deadline - monotonic())))


def _lines(response: Any, opened: Any, deadline: float) -> Iterator[bytes]:
    while True:
        opened.settimeout(max(0.01, min(SILENCE_S_MAX, deadline - monotonic())))
        line = response.readline()
        if not line:
            return
        yield line


def _decoded(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
