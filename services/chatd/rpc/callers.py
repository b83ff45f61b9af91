"""Who calls, as the store knows them."""

from collections.abc import Mapping
from typing import Protocol

from chatd.domain.chat import Owner, OwnerId
from chatd.domain.errors import InvalidRequest
from chatd.domain.views import Reader
from chatd.rpc.fields import uuid_of
from parley.rpc import current_caller


class Groups(Protocol):
    """The groups that users belong to."""

    async def of(self, user_id: OwnerId) -> tuple[str, ...]:
        """Return the ids of a user's groups."""
        ...


class KnownGroups:
    """Groups that are given once; nobody belongs to any that is not."""

    def __init__(self, groups: Mapping[OwnerId, tuple[str, ...]] | None = None) -> None:
        self._groups = dict(groups or {})

    async def of(self, user_id: OwnerId) -> tuple[str, ...]:
        """Return what was given."""
        return self._groups.get(user_id, ())


def caller_as_owner() -> Owner:
    """Return the user on whose behalf this call is made; the rules admit no other."""
    user = current_caller().user
    if user is None:
        raise InvalidRequest("authorization", "the token names no user")
    return Owner(OwnerId(uuid_of(user.id, "authorization")), user.role)


async def caller_as_reader(groups: Groups) -> Reader:
    """Return the same user with what is shared with their groups in sight."""
    user_id = caller_as_owner().id
    return Reader(user_id, await groups.of(user_id))
