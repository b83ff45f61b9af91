"""Background tasks of a process, whose failures never end it."""

from parley.tasks.background import LOOP_PREFIX, BackgroundTasks, Starter
from parley.tasks.completion import ShieldedTasks, Shielding
from parley.tasks.supervision import FAILURES, Supervision

__all__ = [
    "FAILURES",
    "LOOP_PREFIX",
    "BackgroundTasks",
    "ShieldedTasks",
    "Shielding",
    "Starter",
    "Supervision",
]
