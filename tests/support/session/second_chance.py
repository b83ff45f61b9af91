"""Tests that failed beside others and run again alone: those that then pass are told and counted.

Such a test waits for something by time and not by an event, or shares something with another one.
That is a defect of the test or of what it tests, so only a few are let through, by name, until runs
have none. That it passed alone is told, because it says where to look: at what the tests share, and
at what they wait for.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

PASSED_ALONE_MAX = 2


def passed_alone(stats: Mapping[str, Iterable[Any]]) -> list[str]:
    """Return the tests of a run that passed, by what the run says of each."""
    failed = {each.nodeid for kind in ("failed", "error") for each in stats.get(kind, ())}
    passed = {each.nodeid for each in stats.get("passed", ())}
    return sorted(passed - failed)


def told(names: list[str]) -> Iterator[str]:
    """Yield what is said of tests that passed alone."""
    yield from names
    yield f"{len(names)} failed beside others and passed alone; at most {PASSED_ALONE_MAX} may"
