"""Users and groups that something is granted to, and whether they exist."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from chatd.primitives.domain.errors import CheckUnavailable


class GranteeKind(StrEnum):
    """The kinds of grantee a chat can be shared with."""

    USER = "user"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Grantee:
    """A user or a group that a chat is shared with."""

    kind: GranteeKind
    id: str


class Grantees(Protocol):
    """The users and groups of the installation, which the gateway stores."""

    async def unknown(self, grantees: Sequence[Grantee]) -> frozenset[Grantee]:
        """Return those that do not exist, at most 500 at once.

        Raises:
            CheckUnavailable: no gateway answers.
        """
        ...


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
