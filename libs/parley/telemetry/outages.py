"""Logs outages of other services: once, when they have lasted, and their end.

Services start in any order and restart, so a short outage is normal and logged at the level INFO.
"""

import logging
from typing import Final

from parley.clock import Clock

NORMAL_S: Final = 15.0


class OutageLog:
    """The log of one dependency.

    Args:
        log: The logger.
        clock: The clock.
        message: What does not work, as in "no chatd accepts this node".
        normal_s: How long an outage may last before it is logged as a warning.
    """

    def __init__(
        self, log: logging.Logger, clock: Clock, message: str, normal_s: float = NORMAL_S
    ) -> None:
        self._log = log
        self._clock = clock
        self._message = message
        self._normal_s = normal_s
        self._since_s: float | None = None
        self._is_warned = False

    def failed(self, reason: object) -> None:
        """Record a failed attempt."""
        now_s = self._clock.monotonic()
        if self._since_s is None:
            self._since_s = now_s
            self._log.info("%s: %s", self._message, reason)
        elif not self._is_warned and now_s - self._since_s >= self._normal_s:
            self._is_warned = True
            self._log.warning("%s for %.0f s: %s", self._message, now_s - self._since_s, reason)

    def succeeded(self) -> None:
        """Record a successful attempt."""
        if self._since_s is None:
            return
        if self._is_warned:
            lasted_s = self._clock.monotonic() - self._since_s
            self._log.warning("%s: over after %.0f s", self._message, lasted_s)
        self._since_s, self._is_warned = None, False
