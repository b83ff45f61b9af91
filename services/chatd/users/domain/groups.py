"""Groups of users, which the gateway alone knows: who belongs to which, and which were deleted."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from chatd.primitives.domain.ids import OwnerId
from chatd.users.domain.errors import GroupsUnavailable


class Groups(Protocol):
    """The groups that users belong to."""

    async def of(self, user_id: OwnerId) -> tuple[str, ...]:
        """Return the ids of a user's groups.

        Raises:
            GroupsUnavailable: nobody who knows can be asked.
        """
        ...


class KnownGroups:
    """Groups that are given; nobody belongs to any that is not."""

    def __init__(self, groups: Mapping[OwnerId, tuple[str, ...]] | None = None) -> None:
        self.groups = dict(groups or {})
        self.is_available = True
        self.asked = 0

    async def of(self, user_id: OwnerId) -> tuple[str, ...]:
        """Return what was given.

        Raises:
            GroupsUnavailable: it shall look as if nobody could be asked.
        """
        self.asked += 1
        if not self.is_available:
            raise GroupsUnavailable
        return self.groups.get(user_id, ())


class DeletedGroups(Protocol):
    """The groups that are gone for good."""

    async def among(self, group_ids: Sequence[str]) -> frozenset[str]:
        """Return those of at most 500 groups that were deleted.

        Raises:
            GroupsUnavailable: nobody who knows can be asked.
        """
        ...


class KnownDeletions:
    """Deletions that are given; every other group is there or was never heard of."""

    def __init__(self, *group_ids: str) -> None:
        self.group_ids = set(group_ids)
        self.is_available = True

    async def among(self, group_ids: Sequence[str]) -> frozenset[str]:
        """Return what was given of these.

        Raises:
            GroupsUnavailable: it shall look as if nobody could be asked.
        """
        if not self.is_available:
            raise GroupsUnavailable
        return frozenset(group_ids) & self.group_ids
