"""A circuit breaker and a retry budget for overloaded providers.

Both belong to one credential of one provider. They are plain state: the caller passes the time and
the jitter. The breaker opens after consecutive failures that indicate overload, admits one probe
call after a while, and closes with the first call that is answered. The budget keeps retries a
small share of all calls, but always admits a few, so that one chat can try again. A retry that is
answered is returned to the budget: chats that return to a recovered provider must not wait for each
other.
"""

from collections import deque
from dataclasses import dataclass

from chatd.content.domain.messages import ErrorKind
from parley.cache import BoundedCache
from parley.clock import backoff_s

TOO_MUCH = frozenset(
    {
        ErrorKind.OVERLOADED,
        ErrorKind.TIMEOUT,
        ErrorKind.STARTUP_TIMEOUT,
        ErrorKind.STREAM_SILENCE_TIMEOUT,
    }
)


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Thresholds and durations of breaker and budget.

    Attributes:
        failures_max: Consecutive failures that open the breaker.
        open_first_s: How long it stays open the first time; twice as long each time after.
        open_max_s: The longest that it stays open, without jitter.
        probe_s: How long a probe call keeps the others waiting.
        window_s: The window of the budget.
        retries_min: Unanswered retries within the window that are always admitted.
        retries_per_call: How many more for each call within the window.
    """

    failures_max: int = 5
    open_first_s: float = 5.0
    open_max_s: float = 60.0
    probe_s: float = 30.0
    window_s: int = 10
    retries_min: int = 5
    retries_per_call: float = 0.1


@dataclass(slots=True)
class _Second:
    """The calls admitted within one second."""

    number: int
    calls: int = 0
    retries: int = 0


class Breaker:
    """The state of one credential; every admitted call is reported as one of three outcomes.

    Attributes:
        unreachable: Why the provider could not be reached by the last failed call; None if it was.
    """

    def __init__(self, policy: BreakerPolicy | None = None) -> None:
        self._policy = policy or BreakerPolicy()
        self.unreachable: str | None = None
        self._failures = 0
        self._openings = 0
        self._open_until_s: float | None = None
        self._probe_until_s: float | None = None
        self._seconds: deque[_Second] = deque()

    def admit(self, now_s: float, *, is_retry: bool = False) -> float | None:
        """Admit a call and return None, or return how long it must wait."""
        wait_s = self._breaker_wait_s(now_s)
        if wait_s is None and is_retry:
            wait_s = self._budget_wait_s(now_s)
        if wait_s is not None:
            return wait_s
        if self._open_until_s is not None:
            self._probe_until_s = now_s + self._policy.probe_s
        present = self._present(now_s)
        present.calls += 1
        present.retries += is_retry
        return None

    def is_open(self, now_s: float) -> bool:
        """Return whether calls are rejected now, without changing the state."""
        return self._breaker_wait_s(now_s) is not None

    def succeeded(self, repeated_at_s: float | None = None) -> None:
        """Record that a call was answered; `repeated_at_s` is when a retry was admitted."""
        self.unreachable = None
        self._failures = self._openings = 0
        self._open_until_s = self._probe_until_s = None
        if repeated_at_s is not None:
            for second in self._seconds:
                if second.number == int(repeated_at_s) and second.retries:
                    second.retries -= 1

    def failed(
        self, kind: ErrorKind, now_s: float, jitter: float, unreachable: str | None = None
    ) -> None:
        """Record that a call failed; `jitter` is between 0 and 1."""
        self.unreachable = unreachable
        if kind not in TOO_MUCH:
            self.abandoned()
            return
        self._failures += 1
        if self._probe_until_s is not None or self._failures >= self._policy.failures_max:
            self._open(now_s, jitter)

    def abandoned(self) -> None:
        """Record that a call ended without evidence about the provider's load."""
        self._probe_until_s = None

    def _open(self, now_s: float, jitter: float) -> None:
        policy = self._policy
        if self._open_until_s is not None and self._probe_until_s is None:
            return  # A call admitted before it opened fails late; the state is known already.
        self._openings += 1
        open_s = backoff_s(self._openings, policy.open_first_s, policy.open_max_s)
        self._probe_until_s = None
        self._open_until_s = now_s + open_s * (1 + jitter)

    def _breaker_wait_s(self, now_s: float) -> float | None:
        for until_s in (self._open_until_s, self._probe_until_s):
            if until_s is not None and now_s < until_s:
                return until_s - now_s
        return None

    def _budget_wait_s(self, now_s: float) -> float | None:
        self._present(now_s)
        calls = sum(second.calls for second in self._seconds)
        retries = sum(second.retries for second in self._seconds)
        policy = self._policy
        if retries < max(policy.retries_min, policy.retries_per_call * calls):
            return None
        oldest = next(second.number for second in self._seconds if second.retries)
        return oldest + policy.window_s - now_s

    def _present(self, now_s: float) -> _Second:
        """Return the current second, and drop those outside the window."""
        number = int(now_s)
        while self._seconds and self._seconds[0].number <= number - self._policy.window_s:
            self._seconds.popleft()
        if not self._seconds or self._seconds[-1].number != number:
            self._seconds.append(_Second(number))
        return self._seconds[-1]


class Breakers:
    """The breakers of all credentials; the least recently used are evicted."""

    def __init__(self, policy: BreakerPolicy | None = None, kept_max: int = 4096) -> None:
        self._policy = policy or BreakerPolicy()
        self._kept: BoundedCache[tuple[str, str], Breaker] = BoundedCache(kept_max)

    def of(self, provider_id: str, credential_id: str) -> Breaker:
        """Return the breaker of a credential."""
        key = (provider_id, credential_id)
        breaker = self._kept.get(key)
        if breaker is None:
            breaker = Breaker(self._policy)
            self._kept.put(key, breaker)
        return breaker
