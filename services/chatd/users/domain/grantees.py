"""Users and groups that something is granted to, and whether they exist."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


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
