"""The cases of a parametrised unit test as one test, which runs all and reports every failure.

Two thirds of what pytest would collect are cases without fixtures that take microseconds; making,
setting up and reporting each of them takes milliseconds. So all cases of such a test become one
item. When a run selects cases, by their ids or with -k, each is an item, as pytest has them.
"""

import asyncio
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import pytest
from _pytest._code.code import TerminalRepr
from _pytest._io import TerminalWriter
from _pytest.python import CallSpec

#: Where tests have cases that are quick and start nothing.
TABLED = ("tests/unit/", "tests/contract/")
#: The number of cases of a test, kept in its report.
CASES = "cases"
#: Any other mark may hold for some of the cases only; one that a case has itself is looked for.
MARKS = frozenset({"parametrize", "asyncio", "slow"})
#: Fixtures that every test has, and no test here changes.
FIXTURES = frozenset({"event_loop_policy"})
#: The cases of the test that is being collected.
TAKEN = pytest.StashKey[Sequence[CallSpec]]()


class CaseTable(pytest.Item):
    """All cases of one test.

    Attributes:
        function: The test as pytest would collect it without parameters.
        cases: The parameters of each case.
    """

    function: pytest.Function
    cases: Sequence[CallSpec]

    @classmethod
    def of(cls, function: pytest.Function, cases: Sequence[CallSpec]) -> Self:
        """Return the test with these cases."""
        assert function.parent is not None
        made: Self = cls.from_parent(function.parent, name=function.name)
        made.function, made.cases = function, cases
        made.own_markers = function.own_markers
        made.user_properties.append((CASES, len(cases)))
        return made

    def runtest(self) -> None:
        """Run every case, also after one has failed."""
        failures, skipped = [], []
        for case in self.cases:
            try:
                self._run(case)
            except pytest.skip.Exception as reason:
                skipped.append(reason)
            except (Exception, pytest.fail.Exception) as error:
                failures.append(Failure(case.id, pytest.ExceptionInfo.from_exception(error)))
        if failures:
            raise CasesFailed(failures, len(self.cases))
        if skipped:
            pytest.skip(f"{len(skipped)} of {len(self.cases)} cases: {skipped[0].msg}")

    def _run(self, case: CallSpec) -> None:
        test = self.function.obj
        if inspect.iscoroutinefunction(test):
            # In a loop of its own, so that no case finds what another left.
            asyncio.run(test(**case.params))
        else:
            test(**case.params)

    def repr_failure(  # type: ignore[override]
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> TerminalRepr | str:
        """Return what pytest says of each failed case."""
        if not isinstance(excinfo.value, CasesFailed):
            return super().repr_failure(excinfo)
        found = [
            (f"{self.name}[{each.case}]", self.function.repr_failure(each.error))
            for each in excinfo.value.failures
        ]
        return DescribedCases(str(excinfo.value), found)

    def reportinfo(self) -> Any:
        """Return where the test is."""
        return self.function.reportinfo()


@dataclass(frozen=True)
class Failure:
    """The id of a case, and what it raised."""

    case: str
    error: pytest.ExceptionInfo[BaseException]


class CasesFailed(Exception):
    """Some cases of a test failed."""

    def __init__(self, failures: Sequence[Failure], cases: int) -> None:
        super().__init__(f"{len(failures)} of {cases} cases failed")
        self.failures = failures


@dataclass(eq=False)
class DescribedCases(TerminalRepr):
    """What pytest prints of failed cases, one after the other."""

    summary: str
    found: Sequence[tuple[str, str | TerminalRepr]]

    def toterminal(self, tw: TerminalWriter) -> None:
        """Print all cases, then how many they are."""
        for name, described in self.found:
            tw.sep("_", name)
            if isinstance(described, str):
                tw.line(described)
            else:
                described.toterminal(tw)
        tw.line(self.summary)


def take_cases(metafunc: pytest.Metafunc) -> None:
    """Keep pytest from making an item of each case, if the test needs nothing but parameters."""
    calls, test = metafunc._calls, metafunc.definition
    if len(calls) > 1 and is_plain(metafunc) and not selects_cases(metafunc.config):
        assert test.parent is not None
        test.parent.stash[TAKEN] = calls
        metafunc._calls = []


def with_taken(collector: pytest.Collector, made: Any) -> Any:
    """Return what is made of a test function: one item with its cases, if they were taken."""
    cases = collector.stash.get(TAKEN, None)
    if cases is None:
        return made
    del collector.stash[TAKEN]
    [function] = made
    return CaseTable.of(function, cases)


def is_plain(metafunc: pytest.Metafunc) -> bool:
    """Return whether the cases of a test differ in their parameters alone."""
    test = metafunc.definition
    return (
        test.nodeid.startswith(TABLED)
        and isinstance(test.parent, pytest.Module)
        and not getattr(test.obj, "is_hypothesis_test", False)
        and {mark.name for mark in test.iter_markers()} <= MARKS
        and not any(mark.kwargs.get("indirect") for mark in test.iter_markers("parametrize"))
        and all({*test.fixturenames} - FIXTURES <= call.params.keys() for call in metafunc._calls)
        and not any(call.marks for call in metafunc._calls)
    )


def selects_cases(config: pytest.Config) -> bool:
    """Return whether a run names cases of tests."""
    return bool(config.option.keyword) or any("[" in each for each in config.args)
