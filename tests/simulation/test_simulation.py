"""The core survives what chance does to it, and what chance does can be repeated.

Each seed is one run of three processes in virtual time; see `support.simulation`. A failure names
its seed. Replay it with `pytest tests/simulation --seed N`, and look for more with
`--seeds COUNT`, which `scripts/test` takes as well.
"""

from collections.abc import Callable

import pytest

from support.chatd.turns.planted_bugs import Keyless
from support.simulation.batch import Report, simulate_all
from support.simulation.node import Parts
from support.simulation.run import simulate


@pytest.mark.slow
def test_no_seed_loses_doubles_or_strands_anything(
    seeds: range, tell: Callable[[Report], None]
) -> None:
    report = simulate_all(seeds)
    tell(report)
    assert not report.failures, "\n\n".join(report.failures)


def test_a_seed_says_everything_that_happens() -> None:
    assert simulate(6) == simulate(6)


def test_different_seeds_are_different_runs() -> None:
    assert simulate(1) != simulate(2)


def test_a_seed_that_fails_tells_how_to_replay_it() -> None:
    (failure,) = simulate_all(range(1, 2), Parts(database=Keyless)).failures
    assert failure.startswith(
        "seed 1 failed; replay it: pytest tests/simulation/test_simulation.py --seed 1\n"
    )
