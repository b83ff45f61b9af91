"""Sandboxes for tests: none at all, and those that this machine offers, weakest first."""

from functools import cache
from pathlib import Path

from toolrunner.confining import Sandbox, probe
from toolrunner.sandbox import Layer, Level, Report, Trials, judge

UNCONFINED = Sandbox(
    Report(
        level=Level.NONE,
        minimum=Level.NONE,
        layers=(Layer.DESCRIPTORS,),
        missing=(),
        landlock_abi=0,
        kernel="of a test",
    )
)


@cache
def trials() -> Trials:
    """Try everything on this machine, once."""
    return probe(Path("/"))


def offered() -> tuple[Level, ...]:
    """Return the levels that are worth attacking, as far as this machine has them."""
    highest = judge(trials(), minimum=Level.NONE).level
    return tuple(level for level in (Level.LANDLOCK, Level.NS) if level <= highest)


def sandbox_at(level: Level) -> Sandbox:
    """Return this machine's sandbox, held at a level."""
    return Sandbox(judge(trials(), minimum=level, forced=level))
