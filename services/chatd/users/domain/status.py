"""How users stand with the installation, which the gateway alone knows."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from chatd.primitives.domain.ids import OwnerId


class Standing(StrEnum):
    """How a user stands with the gateway."""

    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    DELETED = "deleted"
    UNKNOWN = "unknown"  # The gateway never heard of them, or cannot be asked.


class Standings(Protocol):
    """What the gateway knows of users."""

    async def of(self, user_ids: Sequence[OwnerId]) -> dict[OwnerId, Standing]:
        """Return how each of at most 500 users stands."""
        ...


class KnownStandings:
    """Standings that are given; whoever is not among them is active."""

    def __init__(self, standings: dict[OwnerId, Standing]) -> None:
        self.standings = standings

    async def of(self, user_ids: Sequence[OwnerId]) -> dict[OwnerId, Standing]:
        """Return what was given."""
        return {user_id: self.standings.get(user_id, Standing.ACTIVE) for user_id in user_ids}
