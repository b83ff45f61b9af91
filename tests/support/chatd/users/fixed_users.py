"""Users and groups with fixed memberships, statuses and deletions."""

from collections.abc import Collection, Mapping, Sequence

from chatd.primitives.domain.errors import CheckUnavailable
from chatd.primitives.domain.ids import OwnerId
from chatd.users.domain.grantees import Grantee
from chatd.users.domain.groups import GroupsUnavailable
from chatd.users.domain.status import UserStatus


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


class KnownGrantees:
    """A fixed set of users and groups, for tests."""

    def __init__(self, grantees: Collection[Grantee] = ()) -> None:
        self.grantees = set(grantees)
        self.is_available = True

    async def unknown(self, grantees: Sequence[Grantee]) -> frozenset[Grantee]:
        """Return those that are not in the set.

        Raises:
            CheckUnavailable: `is_available` is False, which simulates an outage of the gateways.
        """
        if not self.is_available:
            raise CheckUnavailable("user or group")
        return frozenset(grantees) - self.grantees


class FixedUserStatuses:
    """Fixed statuses, for tests; all other users are active."""

    def __init__(self, statuses: dict[OwnerId, UserStatus]) -> None:
        self.statuses = statuses
        self.is_available = True

    async def of(self, user_ids: Sequence[OwnerId]) -> dict[OwnerId, UserStatus]:
        """Return the fixed statuses; empty if `is_available` is False, as without a gateway."""
        if not self.is_available:
            return {}
        return {user_id: self.statuses.get(user_id, UserStatus.ACTIVE) for user_id in user_ids}
