"""Supervision of background tasks for objects that a test makes without a process."""

import random  # noqa: TID251 (this is the composition root)
from typing import Any

from opentelemetry.metrics import NoOpCounter, NoOpMeter

from parley.clock import Clock, SystemClock
from parley.tasks import Supervision


def supervision(clock: Clock | None = None) -> Supervision:
    """Return one whose failures are only logged."""
    return Supervision.of(NoOpMeter("tests"), clock or SystemClock(), random.Random(1))


def no_supervision(clock: Clock) -> Supervision:
    """Return one that contains nothing: the first failure is raised, for whoever checks."""
    return Supervision(clock, random.Random(1), _Raising("failures"))


class _Raising(NoOpCounter):
    def add(self, *_: Any, **__: Any) -> None:
        """Raise the failure that was to be counted."""
        raise
