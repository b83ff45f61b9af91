"""What is done to a chat tree by age, for every state that it can be in."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from chatd.models.domain.preferences import InstallationSettings
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.retention.domain.retention import (
    AgeingTree,
    DueStep,
    Ending,
    Notice,
    Policy,
    Step,
    due_steps,
    policy_of,
)

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = Policy(archive_after=30 * DAY, purge_after=90 * DAY, notice=7 * DAY)
OPEN = AgeingTree(
    ChatId("a"), OwnerId("ann"), is_archived=False, is_kept=False, changed_at=NOW - 10 * DAY
)
ARCHIVED = replace(OPEN, is_archived=True)


def told(tree: AgeingTree, ending: Ending, at: datetime, *, age: timedelta) -> AgeingTree:
    """Return a tree whose owner was told so long ago."""
    return replace(tree, notice=Notice(ending, at, NOW - age))


def aged(tree: AgeingTree, days: int) -> AgeingTree:
    return replace(tree, changed_at=NOW - days * DAY)


TOLD = told(aged(OPEN, 30), Ending.ARCHIVE, NOW, age=7 * DAY)


@pytest.mark.parametrize(
    ("tree", "step", "at"),
    [
        (aged(OPEN, 22), None, None),
        (aged(OPEN, 23), Step.NOTICE_ARCHIVE, NOW + 7 * DAY),
        (aged(OPEN, 400), Step.NOTICE_ARCHIVE, NOW + 7 * DAY),
        (replace(aged(OPEN, 400), is_kept=True), None, None),
        (told(aged(OPEN, 29), Ending.ARCHIVE, NOW + DAY, age=6 * DAY), None, None),
        (TOLD, Step.ARCHIVE, NOW),
        (replace(TOLD, is_kept=True), Step.WITHDRAW, NOW),
        (replace(TOLD, changed_at=NOW - 6 * DAY), Step.WITHDRAW, NOW),
        (replace(TOLD, is_archived=True), Step.WITHDRAW, NOW),
        (aged(ARCHIVED, 82), None, None),
        (aged(ARCHIVED, 83), Step.NOTICE_PURGE, NOW + 7 * DAY),
        (told(aged(ARCHIVED, 91), Ending.PURGE, NOW - DAY, age=8 * DAY), Step.PURGE, NOW - DAY),
        (replace(aged(TOLD, 91), is_archived=True), Step.NOTICE_PURGE, NOW + 7 * DAY),
    ],
)  # fmt: skip
def test_a_tree_gets_one_step(tree: AgeingTree, step: Step | None, at: datetime | None) -> None:
    expected = () if step is None or at is None else (DueStep(tree, step, at),)
    assert due_steps((tree,), POLICY, NOW) == expected


def test_a_longer_age_takes_a_notice_back_and_a_shorter_one_leaves_it() -> None:
    longer = replace(POLICY, archive_after=60 * DAY)
    assert due_steps((TOLD,), longer, NOW) == (DueStep(TOLD, Step.WITHDRAW, NOW),)
    assert due_steps((TOLD,), replace(POLICY, archive_after=DAY), NOW) == (
        DueStep(TOLD, Step.ARCHIVE, NOW),
    )


def test_without_ages_nothing_happens_and_notices_are_taken_back() -> None:
    never = policy_of(InstallationSettings())
    assert (never, never.youngest) == (Policy(None, None, 7 * DAY), None)
    old = aged(OPEN, 4000)
    assert due_steps((old, TOLD), never, NOW) == (DueStep(TOLD, Step.WITHDRAW, NOW),)


def test_the_youngest_age_leaves_time_for_the_notice() -> None:
    assert POLICY.youngest == 23 * DAY
    assert replace(POLICY, notice=60 * DAY).youngest == timedelta(0)
