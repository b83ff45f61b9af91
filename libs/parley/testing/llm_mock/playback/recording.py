"""Recorded exchanges, which are played again byte by byte."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from parley.testing.llm_mock.errors import RecordingUnreadable

EVENT_END = re.compile(rb"(?:\r\n|\n|\r){2}")
PROTOCOLS = ("/messages", "/responses", "/chat/completions")
#: Headers that belong to the recorded connection, not to the answer.
HOP_HEADERS = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection"})


class _File(msgspec.Struct):
    path: str
    status: int
    body: str
    headers: dict[str, str] = {}
    host: str = ""


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded answer of a provider at a path."""

    path: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    host: str = ""

    @property
    def is_streamed(self) -> bool:
        """Return whether the answer is a stream of events."""
        return "event-stream" in self.headers.get("content-type", "")

    @property
    def protocol(self) -> str:
        """Return the end of the path that identifies its protocol, empty if it is unknown."""
        path = self.path.partition("?")[0]
        return next((end for end in PROTOCOLS if path.endswith(end)), "")

    def events(self) -> list[bytes]:
        """Return the body, split after each event."""
        ends = [found.end() for found in EVENT_END.finditer(self.body)]
        begins = [0, *ends]
        pieces = [self.body[a:b] for a, b in zip(begins, [*ends, len(self.body)], strict=True)]
        return [piece for piece in pieces if piece]


def read_recording(path: Path) -> Recording:
    """Read one file.

    Raises:
        RecordingUnreadable: it is not a recording; the message says why.
    """
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise RecordingUnreadable(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RecordingUnreadable(
            f"{path} is not a recording: {error}. It needs the fields path, status, headers and "
            "body, as one JSON object"
        ) from error
    if not 200 <= file.status <= 599:
        raise RecordingUnreadable(f"{path} is not a recording: {file.status} is not a status")
    headers = {name.lower(): value for name, value in file.headers.items()}
    return Recording(
        file.path,
        file.status,
        {name: value for name, value in headers.items() if name not in HOP_HEADERS},
        file.body.encode(),
        file.host,
    )


@dataclass(slots=True)
class RecordingQueue:
    """Recordings in the order in which they are played."""

    recordings: tuple[Recording, ...]
    _played: set[int] = field(default_factory=set)

    def take(self, path: str) -> Recording | None:
        """Return the next recording for a path: the same path first, then the same protocol."""
        for matches in (self._at(path), self._like(path)):
            for place in matches:
                if place not in self._played:
                    self._played.add(place)
                    return self.recordings[place]
        return None

    def rewind(self) -> None:
        """Start again with the first one."""
        self._played.clear()

    def _at(self, path: str) -> Iterable[int]:
        return (
            place
            for place, each in enumerate(self.recordings)
            if each.path.partition("?")[0] == path
        )

    def _like(self, path: str) -> Iterable[int]:
        return (
            place
            for place, each in enumerate(self.recordings)
            if each.protocol and path.endswith(each.protocol)
        )
