"""At which levels of the sandbox tests ran, for the end of a run.

Nodes and jails say which level they are held at. A test ran at the levels of those that it opened,
or, if it opened none, of those that a fixture of its module has open.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

LEVELS = ("none", "uid", "landlock", "ns")
#: A test ran at this level.
RAN = "ran at sandbox level"
#: A test was skipped: the level that it is about, a tab, and the reason.
SKIPPED = "skipped at sandbox level"
NOT_OFFERED = re.compile(r"does not offer level (\w+)")


class LevelsOfTests:
    """The levels of what is open now, and of what the test that runs has opened."""

    def __init__(self) -> None:
        self._open = Counter[str]()
        self._seen = set[str]()

    def note(self, level: str) -> None:
        """Note that the test that runs tries something at a level."""
        self._seen.add(level)

    @contextmanager
    def held(self, level: str) -> Iterator[None]:
        """Note that something is held at a level until the context ends."""
        self._open[level] += 1
        self._seen.add(level)
        try:
            yield
        finally:
            self._open[level] -= 1

    def seen(self) -> set[str]:
        """Return the levels that the test that runs has met."""
        return set(self._seen) or {level for level, count in self._open.items() if count}

    def end_test(self) -> None:
        """Begin with the next test."""
        self._seen = set()


levels_of_tests = LevelsOfTests()


def keep_levels(item: pytest.Item, report: pytest.TestReport) -> None:
    """Keep the levels of a test with its reports, which travel from worker to run."""
    if report.skipped:
        reason = reason_of(report)
        for level in named_levels(item, reason) or levels_of_tests.seen():
            item.user_properties.append((SKIPPED, f"{level}\t{reason}"))
    if report.when == "teardown":
        is_skipped = any(name == SKIPPED for name, _ in item.user_properties)
        ran = () if is_skipped else sorted(levels_of_tests.seen())
        report.user_properties += [(RAN, level) for level in ran]
        levels_of_tests.end_test()


def named_levels(item: pytest.Item, reason: str) -> set[str]:
    """Return the levels that a test is about, by its parameters or by why it is skipped."""
    values = getattr(getattr(item, "callspec", None), "params", {}).values()
    words = {str(getattr(value, "word", value)) for value in values}
    return (words & {*LEVELS}) | {*NOT_OFFERED.findall(reason)}


def reason_of(report: pytest.TestReport) -> str:
    """Return why a test was skipped."""
    match report.longrepr:
        case (_, _, str(reason)):
            return reason.removeprefix("Skipped: ")
    return ""


def level_lines(
    ran: Iterable[str], skipped: Iterable[str], missing: Iterable[tuple[str, str]]
) -> list[str]:
    """Return a line for each level.

    Args:
        ran: The level of each test that ran at one.
        skipped: The level and reason of each test that was skipped.
        missing: The levels that this machine does not offer, and why.
    """
    counts, reasons, lacks = Counter(ran), Counter(skipped), dict(missing)
    lines = []
    for level in LEVELS:
        line = f"{level:<8} {counts[level]:>5} ran"
        if level in lacks:
            line += f", not offered by this machine: {lacks[level]}"
        for each, count in sorted(reasons.items()):
            if each.partition("\t")[0] == level:
                line += f", {count} skipped: {each.partition(chr(9))[2]}"
        lines.append(line)
    return lines
