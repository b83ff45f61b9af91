"""The core survives what chance does to it, and what chance does can be repeated.

Each seed is one run of three processes in virtual time; see `support.simulation`. A failure names
its seed. Replay it with `pytest tests/unit/chatd/test_simulation.py --seed N`, and look for more
with `--seeds COUNT`.
"""

import pytest

from support.simulation.batch import failures_of
from support.simulation.run import simulate


@pytest.mark.slow
def test_no_seed_loses_doubles_or_strands_anything(seeds: range) -> None:
    assert failures_of(seeds) == []


def test_a_seed_says_everything_that_happens() -> None:
    assert simulate(6) == simulate(6)


def test_different_seeds_are_different_runs() -> None:
    assert simulate(1) != simulate(2)
