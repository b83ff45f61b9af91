"""Which chats are archived or deleted by age, and when their owners are told.

A chat tree ages from the last change of any of its chats. Its owner is told first, by a notice with
the time at which it will happen; what is done is done only if nothing changed since the notice.
Pinned trees, and trees in which a chat runs or waits for an answer, are left alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from chatd.models.domain.preferences import InstallationSettings
from chatd.primitives.domain.ids import ChatId, OwnerId


class Ending(StrEnum):
    """What happens to a tree in the end."""

    ARCHIVE = "archive"
    PURGE = "purge"


class Step(StrEnum):
    """What is done to a tree now."""

    NOTICE_ARCHIVE = "notice_archive"
    NOTICE_PURGE = "notice_purge"
    WITHDRAW = "withdraw"
    ARCHIVE = "archive"
    PURGE = "purge"


@dataclass(frozen=True, slots=True)
class Policy:
    """Ages at which trees are archived and deleted; None is never."""

    archive_after: timedelta | None
    purge_after: timedelta | None
    notice: timedelta

    @property
    def youngest(self) -> timedelta | None:
        """The age below which nothing is due, not even a notice."""
        ages = [age for age in (self.archive_after, self.purge_after) if age is not None]
        return max(timedelta(0), min(ages) - self.notice) if ages else None


@dataclass(frozen=True, slots=True)
class Notice:
    """What the owner was told."""

    ending: Ending
    at: datetime
    given_at: datetime


@dataclass(frozen=True, slots=True)
class AgeingTree:
    """A chat tree, by its root.

    Attributes:
        is_kept: Whether it is pinned, or one of its chats runs or waits for an answer.
        changed_at: The last change of one of its chats.
    """

    root_chat_id: ChatId
    owner_id: OwnerId
    is_archived: bool
    is_kept: bool
    changed_at: datetime
    notice: Notice | None = None


@dataclass(frozen=True, slots=True)
class DueStep:
    """A step for one tree, and when its ending is due."""

    tree: AgeingTree
    step: Step
    at: datetime


def policy_of(settings: InstallationSettings) -> Policy:
    """Return the policy that the settings of the installation describe."""
    return Policy(
        _age(settings.auto_archive_days),
        _age(settings.retention_days),
        timedelta(days=settings.retention_notice_days),
    )


def due_steps(trees: Iterable[AgeingTree], policy: Policy, now: datetime) -> tuple[DueStep, ...]:
    """Return what is to be done now, in the order of the trees."""
    steps = (_due_step(tree, policy, now) for tree in trees)
    return tuple(step for step in steps if step is not None)


def _due_step(tree: AgeingTree, policy: Policy, now: datetime) -> DueStep | None:
    ending = Ending.PURGE if tree.is_archived else Ending.ARCHIVE
    after = policy.purge_after if tree.is_archived else policy.archive_after
    withdrawn = None if tree.notice is None else DueStep(tree, Step.WITHDRAW, now)
    if tree.is_kept or after is None:
        return withdrawn
    due_at = tree.changed_at + after
    if tree.notice is not None and _holds(tree.notice, tree, ending, due_at):
        at = tree.notice.at
        return DueStep(tree, Step(ending.value), at) if at <= now else None
    if due_at - policy.notice > now:
        return withdrawn
    told = Step.NOTICE_PURGE if ending is Ending.PURGE else Step.NOTICE_ARCHIVE
    return DueStep(tree, told, max(due_at, now + policy.notice))


def _holds(notice: Notice, tree: AgeingTree, ending: Ending, due_at: datetime) -> bool:
    """Return whether a notice is still true: nothing changed since, nor was the age raised."""
    is_unchanged = tree.changed_at <= notice.given_at
    return notice.ending is ending and is_unchanged and notice.at >= due_at


def _age(days: int) -> timedelta | None:
    return timedelta(days=days) if days else None
