"""The status of users, which only the gateway stores."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import OwnerId


class UserSuspended(ChatError):
    """The user is suspended or deleted."""

    def __init__(self, user_id: str) -> None:
        super().__init__("this user is locked out; an administrator can let them in again")
        self.user_id = user_id


class UserStatus(StrEnum):
    """The status of a user at the gateway."""

    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    DELETED = "deleted"
    UNKNOWN = "unknown"  # The gateway has no such user, or cannot be reached.


class UserStatuses(Protocol):
    """Reads the status of users."""

    async def of(self, user_ids: Sequence[OwnerId]) -> dict[OwnerId, UserStatus]:
        """Return the status of each of at most 500 users; empty while no gateway answers."""
        ...
