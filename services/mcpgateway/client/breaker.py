"""A circuit breaker for each server: after repeated failures it is left alone for a while.

Only failures of the transport count: refused credentials of one user or errors of a tool say
nothing about the server for others. While a breaker is open, one attempt after each pause finds
out whether the server is back; the pause doubles up to two minutes.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import CredentialsRefused, UpstreamFailed
from parley.cache import BoundedCache
from parley.clock import Clock

FAILURES_MAX: Final = 5
WINDOW_S: Final = 30.0
PAUSE_FIRST_S: Final = 5.0
PAUSE_MAX_S: Final = 120.0
SERVERS_MAX: Final = 2000
COUNTED: Final = frozenset({Reason.CONNECT_FAILED, Reason.CONNECT_TIMEOUT, Reason.SESSION_LOST})
#: Refusals, which only a server that is back can answer.
ANSWERED: Final = frozenset(
    {
        Reason.NEEDS_CONNECT,
        Reason.NEEDS_RECONNECT,
        Reason.INSUFFICIENT_SCOPE,
        Reason.RATE_LIMITED,
        Reason.REQUEST_REFUSED,
        Reason.RESULT_TOO_LARGE,
    }
)


@dataclass(slots=True)
class _State:
    failed_at: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES_MAX))
    pause_s: float = 0.0
    open_until: float = 0.0


class Breakers:
    """The breakers of all servers, by server and version."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._states: BoundedCache[tuple[str, int], _State] = BoundedCache(SERVERS_MAX)

    def check(self, key: tuple[str, int]) -> None:
        """Reject an operation on a server that is left alone now.

        Raises:
            UpstreamFailed: The breaker is open.
        """
        state = self._states.get(key)
        if state is None or not state.pause_s:
            return
        now = self._clock.monotonic()
        if now < state.open_until:
            pause_s = state.open_until - now
            raise UpstreamFailed(
                Reason.CIRCUIT_OPEN,
                f"the server failed repeatedly and is left alone for {math.ceil(pause_s)} s; "
                "`parley mcp probe` asks it at once",
                retry_after_ms=max(1, round(pause_s * 1000)),
            )
        # This operation finds out whether the server is back; others wait for the next pause.
        state.open_until = now + state.pause_s

    def succeeded(self, key: tuple[str, int]) -> None:
        """Close the breaker."""
        self._states.pop(key)

    def failed(self, key: tuple[str, int], failure: UpstreamFailed) -> None:
        """Count a failure; open the breaker after too many, and close it if the server answered."""
        if failure.reason not in COUNTED:
            state = self._states.get(key)
            # Otherwise one user whose requests are refused could use up every attempt.
            is_answer = isinstance(failure, CredentialsRefused) or failure.reason in ANSWERED
            if state is not None and state.pause_s and is_answer:
                self._states.pop(key)
            return
        now = self._clock.monotonic()
        state = self._states.get(key) or _State()
        state.failed_at.append(now)
        is_failing = len(state.failed_at) == FAILURES_MAX and now - state.failed_at[0] <= WINDOW_S
        if state.pause_s or is_failing:
            state.pause_s = min(2 * state.pause_s or PAUSE_FIRST_S, PAUSE_MAX_S)
            state.open_until = now + state.pause_s
        self._states.put(key, state)
