"""Counts input that is no valid HTTP request, and logs it with a rate limit.

Anybody can send such input without a credential, as often as they like.
"""

import logging
from typing import Final

from parley.clock import Clock

LOGGED_EVERY_S: Final = 10.0

_log = logging.getLogger(__name__)


class RefusedInput:
    """Logs refused input at most once in ten seconds, with the number since the last line.

    Args:
        clock: The clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged_at = clock.monotonic() - LOGGED_EVERY_S
        self._count = 0

    def note(self, code: str, detail: str) -> None:
        """Count input that is refused.

        Args:
            code: The code of the problem that it is answered with.
            detail: Its detail, which has no input in it.
        """
        now = self._clock.monotonic()
        self._count += 1
        if now - self._logged_at < LOGGED_EVERY_S:
            return
        _log.warning(
            "input that is no valid HTTP request was refused",
            extra={"refused_count": self._count, "last_code": code, "last_detail": detail},
        )
        self._logged_at, self._count = now, 0
