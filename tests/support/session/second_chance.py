"""Tests that failed beside others and run again alone: those that then pass are told and counted.

Such a test waits for something by time and not by an event, or shares something with another one.
That is a defect of the test or of what it tests, so each of them fails the run. A machine that is
slow or shared may allow itself some, because there others fail than where the tests were written.
That it passed alone is told, because it says where to look: at what the tests share, and at what
they wait for.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def passed_alone(stats: Mapping[str, Iterable[Any]]) -> list[str]:
    """Return the tests of a run that passed, by what the run says of each."""
    passed = {each.nodeid for each in stats.get("passed", ())}
    return sorted(passed - _failed(stats))


def told(stats: Mapping[str, Iterable[Any]], allowed: int) -> Iterator[str]:
    """Yield what is said of tests that failed beside others, by what their second run says."""
    passed, failed = passed_alone(stats), sorted(_failed(stats))
    yield from (f"passed alone  {name}" for name in passed)
    yield from (f"failed again  {name}" for name in failed)
    yield f"{len(failed)} failed again; none may"
    may = f"at most {allowed} may" if allowed else "none may"
    yield f"{len(passed)} failed beside others and passed alone; {may}"


def _failed(stats: Mapping[str, Iterable[Any]]) -> set[str]:
    return {each.nodeid for kind in ("failed", "error") for each in stats.get(kind, ())}
