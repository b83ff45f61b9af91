"""What one user may have of workspaces."""

import pytest

from chatd.workspaces.domain.commands import Remove
from chatd.workspaces.domain.quota import GIB, Dimension, QuotaLimits, QuotaUse, exhausted, uses
from chatd.workspaces.domain.transitions import decide
from chatd.workspaces.domain.workspace import State, Usage, Workspace
from support.chatd.workspaces.workspace_values import NOON, workspace

LIMITS = QuotaLimits(live_workspaces=2, workspaces=3, disk_bytes=100)


def had(*states: State) -> list[Workspace]:
    return [workspace(state) for state in states]


def test_workspaces_that_are_not_stopped_are_live() -> None:
    used = uses(had(State.READY, State.STOPPED, State.FAILED, State.DELETED), LIMITS)
    assert used[:2] == (
        QuotaUse(Dimension.LIVE_WORKSPACES, 1, 2),
        QuotaUse(Dimension.WORKSPACES, 3, 3),
    )


@pytest.mark.parametrize(
    ("state", "live"), [(State.STOPPED, 2), (State.FAILED, 2), (State.READY, 3), (State.BUSY, 3)]
)
def test_the_removal_of_a_stopped_workspace_makes_it_no_live_one(state: State, live: int) -> None:
    removed = decide(workspace(state), Remove(), NOON)
    others = had(State.READY, State.READY)
    assert (removed.state, removed.is_removing) == (State.STOPPING, True)
    assert uses([*others, removed], LIMITS)[:2] == (
        QuotaUse(Dimension.LIVE_WORKSPACES, live, 2),
        QuotaUse(Dimension.WORKSPACES, 3, 3),
    )


def test_the_first_limit_that_would_break_is_told_with_how_to_free_some() -> None:
    live = exhausted(had(State.READY, State.PREPARING), LIMITS, is_new=True)
    assert live == QuotaUse(Dimension.LIVE_WORKSPACES, 2, 2)
    assert live is not None
    assert live.how_to_free == "stop one that is not needed now; its files are kept"
    kept = exhausted(had(State.STOPPED, State.STOPPED, State.FAILED), LIMITS, is_new=True)
    assert kept == QuotaUse(Dimension.WORKSPACES, 3, 3)


def test_starting_one_that_exists_needs_no_room_for_another() -> None:
    three = had(State.STOPPED, State.STOPPED, State.FAILED)
    assert exhausted(three, LIMITS, is_new=False) is None


def test_who_filled_the_disk_gets_no_more() -> None:
    full = [workspace(State.READY, usage=Usage(disk_bytes=100))]
    assert exhausted(full, LIMITS, is_new=True) == QuotaUse(Dimension.DISK_BYTES, 100, 100)


def test_scratch_directories_of_chats_count_by_what_they_use_only() -> None:
    many = [workspace(State.READY, is_scratch_of_chat=True, usage=Usage(disk_bytes=1))] * 50
    assert exhausted(many, LIMITS, is_new=True) is None
    assert uses(many, LIMITS)[5] == QuotaUse(Dimension.DISK_BYTES, 50, 100)


def test_no_limit_is_no_limit() -> None:
    none = QuotaLimits(0, 0, 0, 0, 0, 0, 0)
    assert exhausted(had(*[State.READY] * 99), none, is_new=True) is None


def test_what_stopped_workspaces_keep_counts_and_does_not_keep_them_from_starting() -> None:
    stopped = workspace(State.STOPPED, usage=Usage(disk_bytes=11 * GIB))
    refused = exhausted([stopped], QuotaLimits(), is_new=True)
    assert refused == QuotaUse(Dimension.DISK_BYTES, 11 * GIB, 10 * GIB)
    # Where else should anybody delete a file of it?
    assert exhausted([stopped], QuotaLimits(), is_new=False) is None
