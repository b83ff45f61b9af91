"""How fast one user may create workspaces."""

from datetime import datetime, timedelta

import pytest

from chatd.workspaces.domain.creation_rate import wait_s
from support.chatd.workspaces.workspace_values import NOON


def ago(*seconds: float) -> list[datetime]:
    return [NOON - timedelta(seconds=each) for each in seconds]


@pytest.mark.parametrize(
    ("created_at", "created_max", "expected_s"),
    [
        ([], 3, 0.0),
        (ago(0, 0), 3, 0.0),
        # The third newest is the one whose minute has to end.
        (ago(0, 10, 20), 3, 40.0),
        (ago(0, 10, 20, 50), 3, 40.0),
        (ago(5, 30, 60), 3, 0.0),
        (ago(5, 30, 90), 3, 0.0),
        # Clocks of two transactions differ by less than either lasts.
        (ago(-1, -1), 2, 61.0),
        (ago(*[0] * 1000), 0, 0.0),
    ],
)
def test_one_more_waits_until_few_enough_were_created_within_a_minute(
    created_at: list[datetime], created_max: int, expected_s: float
) -> None:
    assert wait_s(created_at, created_max, NOON) == expected_s
