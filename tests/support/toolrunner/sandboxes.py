"""Sandboxes for tests: none at all, and those that this machine offers, weakest first."""

import json
from functools import cache
from pathlib import Path

import pytest

from support.session.sandbox_levels import levels_of_tests
from support.toolrunner.worker_users import WORKER_USERS
from toolrunner.processes.node_sandbox import Sandbox, probe
from toolrunner.sandbox import Layer, Level, Report, Trials, judge

UNCONFINED = Sandbox(
    Report(
        level=Level.NONE,
        minimum=Level.NONE,
        layers=(Layer.DESCRIPTORS,),
        missing=(),
        landlock_abi=0,
        kernel="of a test",
    ),
    WORKER_USERS,
)


@cache
def trials() -> Trials:
    """Try everything on this machine, once."""
    return probe(Path("/"), WORKER_USERS.first)


def offered() -> tuple[Level, ...]:
    """Return the levels that keep everything, as far as this machine has them."""
    return tuple(level for level in (Level.LANDLOCK, Level.NS) if judged_at(level).level is level)


def all_offered() -> tuple[Level, ...]:
    """Return these, and `uid` where the machine has it, which keeps less."""
    has_users = trials().works(Layer.UID)
    return ((Level.UID,) if has_users else ()) + offered()


def requires(level: Level) -> pytest.MarkDecorator:
    """Skip a test where the machine does not offer a level."""
    return pytest.mark.skipif(
        level not in all_offered(), reason=f"this machine does not offer level {level.word}"
    )


def not_offered() -> list[tuple[str, str]]:
    """Return the levels that this machine does not offer, and why."""
    return [
        (level.word, "; ".join(each.cause for each in judged_at(level).missing))
        for level in (Level.UID, Level.LANDLOCK, Level.NS)
        if level not in all_offered()
    ]


def judged_at(level: Level) -> Report:
    return judge(trials(), minimum=Level.NONE, forced=level)


def judged(row: str, level: Level, told: str) -> dict[str, str]:
    """Say how many attempts an attack made, and return those that succeeded.

    Args:
        row: Of the matrix.
        level: At which it was made.
        told: What it printed: JSON of each attempt, with whether it succeeded and what came of it.
    """
    try:
        tried = json.loads(told)
    except ValueError:
        raise AssertionError(told) from None
    successes = {name: detail for name, (is_success, detail) in tried.items() if is_success}
    tell(row, level, len(successes), len(tried))
    return successes


def tell(row: str, level: Level, successes: int, attempts: int) -> None:
    """Say how many attempts succeeded."""
    levels_of_tests.note(level.word)
    print(told_line(row, level.word, successes, attempts))


def told_line(row: str, level: str, successes: int, attempts: int) -> str:
    """Return how a row of the matrix is told; the end of a run shows all such lines."""
    return f"{row} at {level}: {successes} of {attempts} succeeded"


def sandbox_at(level: Level) -> Sandbox:
    """Return this machine's sandbox, held at a level."""
    return Sandbox(judge(trials(), minimum=level, forced=level), WORKER_USERS)
