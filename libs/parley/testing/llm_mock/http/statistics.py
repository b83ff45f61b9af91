"""Counters of the server."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from parley.clock import Clock
from parley.testing.llm_mock.exchange.request import HttpRequest

SECRETS = ("authorization", "x-api-key", "api-key", "x-amz-security-token")


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts since the start or the last reset.

    Attributes:
        requests: Requests to models, refused ones included.
        by_model: The same by the name of the model; refused ones may have none.
        by_path: The same by path.
        by_status: The same by status.
        open_streams: Answers that are being sent now.
        open_streams_peak: The maximum number of answers sent at the same time.
        peak_per_s: The maximum number of requests within one second.
    """

    requests: int
    by_model: Mapping[str, int]
    by_path: Mapping[str, int]
    by_status: Mapping[int, int]
    open_streams: int
    open_streams_peak: int
    peak_per_s: int

    def json(self) -> bytes:
        """Return the counts as JSON."""
        return msgspec.json.encode(asdict(self))


@dataclass(frozen=True, slots=True)
class Served:
    """One request and its answer; keys are removed from its headers."""

    at_s: float
    path: str
    model: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        try:
            body = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            body = self.body.decode(errors="replace")
        return {
            "at_s": self.at_s,
            "path": self.path,
            "model": self.model,
            "status": self.status,
            "headers": dict(self.headers),
            "body": body,
        }


@dataclass(slots=True)
class RequestCounters:
    """Counts requests."""

    clock: Clock
    keep: int
    _models: Counter[str] = field(default_factory=Counter)
    _paths: Counter[str] = field(default_factory=Counter)
    _statuses: Counter[int] = field(default_factory=Counter)
    _last_second: deque[float] = field(default_factory=deque)
    _served: deque[Served] = field(init=False)
    _peak: int = 0
    _open: int = 0
    _open_peak: int = 0

    def __post_init__(self) -> None:
        self._served = deque(maxlen=self.keep)

    def count(self, request: HttpRequest, model: str, status: int) -> None:
        """Count one request."""
        now_s = self.clock.monotonic()
        self._models[model] += 1
        self._paths[request.path] += 1
        self._statuses[status] += 1
        self._last_second.append(now_s)
        while self._last_second[0] <= now_s - 1:
            self._last_second.popleft()
        self._peak = max(self._peak, len(self._last_second))
        self._served.append(
            Served(now_s, request.target, model, status, _open(request.headers), request.body)
        )

    def opened(self) -> None:
        """Count a stream that begins."""
        self._open += 1
        self._open_peak = max(self._open_peak, self._open)

    def closed(self) -> None:
        """Count a stream that ended in any way."""
        self._open -= 1

    def statistics(self) -> Statistics:
        """Return all counts."""
        return Statistics(
            requests=sum(self._statuses.values()),
            by_model=dict(self._models),
            by_path=dict(self._paths),
            by_status=dict(self._statuses),
            open_streams=self._open,
            open_streams_peak=self._open_peak,
            peak_per_s=self._peak,
        )

    def served(self, last: int) -> tuple[Served, ...]:
        """Return the last requests, oldest first."""
        kept = tuple(self._served)
        return kept[max(0, len(kept) - last) :]

    def reset(self) -> None:
        """Reset everything but the count of open streams."""
        for counts in (self._models, self._paths, self._statuses):
            counts.clear()
        self._last_second.clear()
        self._served.clear()
        self._peak, self._open_peak = 0, self._open


def _open(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in headers.items() if name not in SECRETS}
