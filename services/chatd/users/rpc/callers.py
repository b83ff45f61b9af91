"""The caller of the current request as owner or reader."""

from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import Owner, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.primitives.rpc.fields import uuid_of
from chatd.users.domain.groups import Groups, GroupsUnavailable
from parley.rpc import current_caller


def caller_as_owner() -> Owner:
    """Return the user on whose behalf this call is made; the access rules admit no other caller."""
    user = current_caller().user
    if user is None:
        raise InvalidRequest("authorization", "the token names no user")
    return Owner(OwnerId(uuid_of(user.id, "authorization")), user.role)


async def caller_as_reader(groups: Groups) -> Reader:
    """Return the same user with their groups, so that shares with these are visible."""
    return await reader_in_groups(caller_as_owner().id, groups)


async def reader_in_groups(user_id: OwnerId, groups: Groups) -> Reader:
    """Return a user as a reader; while no gateway returns their groups, as one without groups.

    Their own chats and those shared with them directly stay readable then. A chat that is shared
    with a group is hidden, because the user may have left the group.
    """
    try:
        return Reader(user_id, await groups.of(user_id))
    except GroupsUnavailable:
        return Reader(user_id)
