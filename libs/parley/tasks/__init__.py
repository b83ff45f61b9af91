"""Tasks: in the background, shielded from their caller, or the first of several."""

from parley.tasks.background import LOOP_PREFIX, BackgroundTasks, Starter
from parley.tasks.completion import ShieldedTasks, Shielding, captured, result_of
from parley.tasks.race import Overtaken, Start, first_of, is_set_within, owned_tasks, run_unless
from parley.tasks.supervision import FAILURES, Supervision

__all__ = [
    "FAILURES",
    "LOOP_PREFIX",
    "BackgroundTasks",
    "Overtaken",
    "ShieldedTasks",
    "Shielding",
    "Start",
    "Starter",
    "Supervision",
    "captured",
    "first_of",
    "is_set_within",
    "owned_tasks",
    "result_of",
    "run_unless",
]
