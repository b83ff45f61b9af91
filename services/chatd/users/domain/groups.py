"""Ports for the groups of users, which only the gateway stores: memberships and deletions."""

from collections.abc import Sequence
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


class DeletedGroups(Protocol):
    """The groups that were deleted."""

    async def among(self, group_ids: Sequence[str]) -> frozenset[str]:
        """Return those of at most 500 groups that were deleted.

        Raises:
            GroupsUnavailable: no gateway answers.
        """
        ...


class GroupsUnavailable(ChatError):
    """No gateway can be asked for groups."""

    def __init__(self) -> None:
        super().__init__("no gateway tells about groups; try again")
