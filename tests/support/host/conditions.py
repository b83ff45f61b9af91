"""Waiting for what other processes do, where they have no way of telling."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LOOK_EVERY_S = 0.05


def until(look: Callable[[], T], what: str, *, within_s: float) -> T:
    """Return the first thing that `look` finds; `what` says what was waited for in vain."""
    give_up_at = time.monotonic() + within_s
    pause = threading.Event()
    while not (found := look()):
        if time.monotonic() > give_up_at:
            raise AssertionError(f"{what} did not happen within {within_s:g} s")
        pause.wait(LOOK_EVERY_S)
    return found
