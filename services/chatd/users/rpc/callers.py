"""The caller of the current request, and the users and groups that a request names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from chatd.primitives.domain.errors import InvalidRequest, UnknownIds
from chatd.primitives.domain.ids import Owner, OwnerId
from chatd.primitives.domain.requests import ADMINISTRATORS, Reader
from chatd.primitives.rpc.fields import uuid_of
from chatd.users.domain.grantees import Grantee, Grantees
from chatd.users.domain.groups import Groups, GroupsUnavailable
from parley.rpc import current_caller

ADMINISTRATOR_ROLES: Final = frozenset({"owner", "admin"})


def caller_as_owner() -> Owner:
    """Return the user on whose behalf this call is made; the access rules admit no other caller."""
    user = current_caller().user
    if user is None:
        raise InvalidRequest("authorization", "the token names no user")
    return Owner(OwnerId(uuid_of(user.id, "authorization")), user.role)


async def caller_as_reader(groups: Groups) -> Reader:
    """Return the same user with their groups, so that shares with these are visible."""
    caller = caller_as_owner()
    reader = await reader_in_groups(caller.id, groups)
    if caller.role not in ADMINISTRATOR_ROLES:
        return reader
    return replace(reader, group_ids=(*reader.group_ids, ADMINISTRATORS))


async def reader_in_groups(user_id: OwnerId, groups: Groups) -> Reader:
    """Return a user as a reader; while no gateway returns their groups, as one without groups.

    Their own chats and those shared with them directly stay readable then. A chat that is shared
    with a group is hidden, because the user may have left the group.
    """
    try:
        return Reader(user_id, await groups.of(user_id))
    except GroupsUnavailable:
        return Reader(user_id)


async def require_grantees(
    known: Grantees,
    grantees: Sequence[Grantee],
    *,
    fields: Sequence[str],
    stored: Sequence[Grantee] = (),
) -> None:
    """Require that all users and groups exist or are already stored.

    Args:
        known: Checks which exist.
        grantees: The users and groups.
        fields: The request field of each of them.
        stored: Those that are not checked again.

    Raises:
        UnknownIds: one of them does not exist.
        CheckUnavailable: no gateway answers.
    """
    new = [each for each in grantees if each not in stored]
    unknown = await known.unknown(new) if new else frozenset()
    if unknown:
        problems = {
            field: f"names no {each.kind}"
            for each, field in zip(grantees, fields, strict=True)
            if each in unknown
        }
        resource = " or ".join(sorted({each.kind for each in unknown}))
        raise UnknownIds(resource, problems)
