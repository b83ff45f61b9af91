"""How users stand with the installation, which the gateway alone knows."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from chatd.primitives.domain.ids import OwnerId


class UserStatus(StrEnum):
    """How a user stands with the gateway."""

    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    DELETED = "deleted"
    UNKNOWN = "unknown"  # The gateway never heard of them, or cannot be asked.


class UserStatuses(Protocol):
    """What the gateway knows of users."""

    async def of(self, user_ids: Sequence[OwnerId]) -> dict[OwnerId, UserStatus]:
        """Return how each of at most 500 users stands."""
        ...


class FixedUserStatuses:
    """Standings that are given; whoever is not among them is active."""

    def __init__(self, statuses: dict[OwnerId, UserStatus]) -> None:
        self.statuses = statuses

    async def of(self, user_ids: Sequence[OwnerId]) -> dict[OwnerId, UserStatus]:
        """Return what was given."""
        return {user_id: self.statuses.get(user_id, UserStatus.ACTIVE) for user_id in user_ids}
