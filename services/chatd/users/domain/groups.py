"""Ports for the groups of users, which only the gateway stores: memberships and deletions."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import OwnerId


class Groups(Protocol):
    """The groups that users belong to."""

    async def of(self, user_id: OwnerId) -> tuple[str, ...]:
        """Return the ids of a user's groups.

        Raises:
            GroupsUnavailable: no gateway answers.
        """
        ...


class KnownGroups:
    """Fixed memberships, for tests."""

    def __init__(self, groups: Mapping[OwnerId, tuple[str, ...]] | None = None) -> None:
        self.groups = dict(groups or {})
        self.is_available = True
        self.asked = 0

    async def of(self, user_id: OwnerId) -> tuple[str, ...]:
        """Return the fixed groups of the user.

        Raises:
            GroupsUnavailable: `is_available` is False, which simulates an outage of the gateways.
        """
        self.asked += 1
        if not self.is_available:
            raise GroupsUnavailable
        return self.groups.get(user_id, ())


class DeletedGroups(Protocol):
    """The groups that were deleted."""

    async def among(self, group_ids: Sequence[str]) -> frozenset[str]:
        """Return those of at most 500 groups that were deleted.

        Raises:
            GroupsUnavailable: no gateway answers.
        """
        ...


class KnownDeletions:
    """Fixed deletions, for tests; every other group exists or is unknown."""

    def __init__(self, *group_ids: str) -> None:
        self.group_ids = set(group_ids)
        self.is_available = True

    async def among(self, group_ids: Sequence[str]) -> frozenset[str]:
        """Return the deleted ones of these groups.

        Raises:
            GroupsUnavailable: `is_available` is False, which simulates an outage of the gateways.
        """
        if not self.is_available:
            raise GroupsUnavailable
        return frozenset(group_ids) & self.group_ids


class GroupsUnavailable(ChatError):
    """No gateway can be asked for groups."""

    def __init__(self) -> None:
        super().__init__("no gateway tells about groups; try again")
