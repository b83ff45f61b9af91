"""Ids that sort by creation time."""

import random  # noqa: TID251 (only the type; chance is an argument)
from typing import Final

from parley.clock import Clock

RANDOM_BITS: Final = 74
# Consecutive ids stay hard to guess, and a millisecond allows more than a hundred million ids.
STEP_MAX: Final = 2**32


class TimeOrderedIds:
    """Makes UUIDs of version 7, each greater than the one before, even if the clock steps back.

    The 48 bits of milliseconds and the 74 random bits are treated as one number. If the clock has
    not advanced, the number grows by a random step, which may carry into the milliseconds. Not
    thread-safe.
    """

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._last = 0

    def __call__(self) -> str:
        """Return the next id as text."""
        milliseconds = int(self._clock.now().timestamp() * 1000)
        if milliseconds > self._last >> RANDOM_BITS:
            self._last = milliseconds << RANDOM_BITS | self._rng.getrandbits(RANDOM_BITS)
        else:
            self._last += self._rng.randrange(1, STEP_MAX)
        return _text(self._last)


def _text(number: int) -> str:
    high, low = number >> 62, number & (1 << 62) - 1
    milliseconds, high_random = high >> 12, high & 0xFFF
    digits = f"{milliseconds << 80 | 7 << 76 | high_random << 64 | 0b10 << 62 | low:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
