"""How often one user may start workspaces."""

import pytest

from chatd.primitives.domain.ids import OwnerId
from chatd.workspaces.domain.errors import TooManyNewWorkspaces
from chatd.workspaces.engine.start_rate import StartRate
from parley.clock import FakeClock
from support.chatd.workspaces.workspace_values import NOON

ANN, EVE = OwnerId("ann"), OwnerId("eve")


def test_starts_within_a_minute_are_bounded_for_each_user() -> None:
    clock = FakeClock(NOON)
    rate = StartRate(clock, 2)
    rate.count(ANN)
    clock.advance(20.0)
    rate.count(ANN)
    clock.advance(20.0)
    for _ in range(3):
        with pytest.raises(TooManyNewWorkspaces) as refused:
            rate.count(ANN)
        assert (refused.value.created_max, refused.value.retry_after_s) == (2, 20.0)
    rate.count(EVE)
    clock.advance(20.0)
    rate.count(ANN)
    with pytest.raises(TooManyNewWorkspaces) as refused:
        rate.count(ANN)
    assert refused.value.retry_after_s == 20.0


def test_without_a_limit_every_start_is_allowed() -> None:
    rate = StartRate(FakeClock(NOON), 0)
    for _ in range(100):
        rate.count(ANN)
