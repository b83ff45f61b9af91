"""The simulation finds bugs: each of those below is planted, and must be noticed.

Most must make one of the seeds fail. What that cannot show, because it is too rare there or because
something else makes it good, must make the test fail that is named with it.
"""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from support.chatd.turns.planted_bugs import BUGS, BUGS_FOR_TESTS, first_symptom, is_noticed
from support.simulation.batch import prepare_process

SEEDS_MAX = 1000
WAIT_MAX_S = 300.0


class Search:
    """Looks for all bugs that the tests of a run ask for, on every processor there is."""

    def __init__(self, processes: ProcessPoolExecutor, names: set[str]) -> None:
        seeds, here = (
            range(SEEDS_MAX),
            str(Path(__file__).parents[1] / "unit" / "chatd" / "turns" / "worker"),
        )
        self._symptoms = {
            name: processes.submit(first_symptom, name, seeds) for name in BUGS if name in names
        }
        self._tests = {
            name: processes.submit(is_noticed, name, here)
            for name in BUGS_FOR_TESTS
            if name in names
        }

    def symptom(self, name: str) -> str | None:
        return self._symptoms[name].result(WAIT_MAX_S)

    def is_noticed(self, name: str) -> bool:
        return self._tests[name].result(WAIT_MAX_S)


@pytest.fixture(scope="module")
def search(request: pytest.FixtureRequest) -> Iterator[Search]:
    calls = (getattr(item, "callspec", None) for item in request.session.items)
    names = {str(call.params.get("planted")) for call in calls if call is not None}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        os.cpu_count(), mp_context=context, initializer=prepare_process
    ) as processes:
        yield Search(processes, names)


@pytest.mark.slow
@pytest.mark.parametrize("planted", BUGS)
def test_the_simulation_finds(planted: str, search: Search) -> None:
    assert search.symptom(planted) is not None


@pytest.mark.slow
@pytest.mark.parametrize("planted", BUGS_FOR_TESTS)
def test_another_test_finds(planted: str, search: Search) -> None:
    assert search.is_noticed(planted)
