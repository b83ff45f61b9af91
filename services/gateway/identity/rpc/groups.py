"""Serves groups: reading, managing, and which groups were deleted."""

from collections.abc import Iterator

import grpc

from gateway.identity.domain import GroupRecord, UserState
from gateway.identity.engine.groups import (
    READERS_OF_ALL_GROUPS,
    GroupRename,
    Groups,
    NewGroup,
    name_key,
)
from gateway.identity.engine.service_tokens import PAGE_SIZE_MAX, is_uuid
from gateway.identity.errors import InvalidRequest, UserNotFound
from gateway.identity.rpc.service_tokens import calling_user, timestamp
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.groups import GroupStore
from parley.api.identity.v1 import group_service_pb2 as groups_api
from parley.api.identity.v1 import user_pb2
from parley.api.identity.v1.group_service_pb2_grpc import GroupServiceServicer
from parley.rpc import Violation

BATCH_MAX = 500
LIST_DEFAULT = 50
QUERY_CHARACTERS_MAX = 128

Context = grpc.aio.ServicerContext


class GroupServicer(GroupServiceServicer):
    """Serves groups."""

    def __init__(self, store: GroupStore, groups: Groups, people: IdentityStore) -> None:
        self._store = store
        self._groups = groups
        self._identity_store = people

    async def GetGroup(  # noqa: N802 (the name is the proto's)
        self, request: groups_api.GetGroupRequest, context: Context
    ) -> groups_api.GetGroupResponse:
        """Return one group; a member sees only their own groups."""
        group = await self._groups.read(calling_user(), request.group_id)
        return groups_api.GetGroupResponse(group=group_to_proto(group))

    async def BatchGetGroups(  # noqa: N802 (the name is the proto's)
        self, request: groups_api.BatchGetGroupsRequest, context: Context
    ) -> groups_api.BatchGetGroupsResponse:
        """Return which of several groups exist and which were deleted."""
        if not 1 <= len(request.group_ids) <= BATCH_MAX:
            raise InvalidRequest(Violation("group_ids", f"give 1 to {BATCH_MAX} ids"))
        wanted = tuple(
            dict.fromkeys(group_id.lower() for group_id in request.group_ids if is_uuid(group_id))
        )
        # The deleted ones are read second: a group deleted in between is then in both, not in none.
        found = {group.id: group for group in await self._store.find_many(wanted)}
        deleted = await self._store.deleted_among(wanted)
        return groups_api.BatchGetGroupsResponse(
            groups=[
                group_to_proto(found[each])
                for each in wanted
                if each in found and each not in deleted
            ],
            deleted_group_ids=[each for each in wanted if each in deleted],
        )

    async def ListGroups(  # noqa: N802 (the name is the proto's)
        self, request: groups_api.ListGroupsRequest, context: Context
    ) -> groups_api.ListGroupsResponse:
        """List groups, ordered by name."""
        violations = tuple(_list_violations(request))
        if violations:
            raise InvalidRequest(*violations)
        size = request.page_size or LIST_DEFAULT
        page = await self._store.page(
            after=request.page_token, limit=size + 1, query=name_key(request.query)
        )
        return groups_api.ListGroupsResponse(
            groups=map(group_to_proto, page[:size]),
            next_page_token=page[size - 1].id if len(page) > size else "",
        )

    async def ListUserGroups(  # noqa: N802 (the name is the proto's)
        self, request: groups_api.ListUserGroupsRequest, context: Context
    ) -> groups_api.ListUserGroupsResponse:
        """List the groups of a user; a member sees only their own."""
        reader, user_id = calling_user(), request.user_id.lower()
        may_see = reader.role in READERS_OF_ALL_GROUPS or reader.id == user_id
        is_found = may_see and is_uuid(user_id)
        user = await self._identity_store.find_user(user_id) if is_found else None
        if user is None or user.state is UserState.DELETED:
            raise UserNotFound(request.user_id)
        groups = await self._store.of_user(user.id)
        return groups_api.ListUserGroupsResponse(groups=map(group_to_proto, groups))

    async def CreateGroup(  # noqa: N802 (the name is the proto's)
        self, request: groups_api.CreateGroupRequest, context: Context
    ) -> groups_api.CreateGroupResponse:
        """Create a group; a repeated request returns the same one."""
        asked = NewGroup(request.request_id, request.name)
        group = await self._groups.create(calling_user(), asked)
        return groups_api.CreateGroupResponse(group=group_to_proto(group))

    async def RenameGroup(  # noqa: N802 (the name is the proto's)
        self, request: groups_api.RenameGroupRequest, context: Context
    ) -> groups_api.RenameGroupResponse:
        """Rename a group."""
        asked = GroupRename(request.group_id, request.name, request.expected_version)
        group = await self._groups.rename(asked)
        return groups_api.RenameGroupResponse(group=group_to_proto(group))

    async def DeleteGroup(  # noqa: N802 (the name is the proto's)
        self, request: groups_api.DeleteGroupRequest, context: Context
    ) -> groups_api.DeleteGroupResponse:
        """Delete a group permanently."""
        await self._groups.delete(request.group_id)
        return groups_api.DeleteGroupResponse()

    async def AddGroupMember(  # noqa: N802 (the name is the proto's)
        self, request: groups_api.AddGroupMemberRequest, context: Context
    ) -> groups_api.AddGroupMemberResponse:
        """Add a user to a group."""
        group = await self._groups.add_member(request.group_id, request.user_id)
        return groups_api.AddGroupMemberResponse(group=group_to_proto(group))

    async def RemoveGroupMember(  # noqa: N802 (the name is the proto's)
        self, request: groups_api.RemoveGroupMemberRequest, context: Context
    ) -> groups_api.RemoveGroupMemberResponse:
        """Remove a user from a group."""
        group = await self._groups.remove_member(request.group_id, request.user_id)
        return groups_api.RemoveGroupMemberResponse(group=group_to_proto(group))


def group_to_proto(group: GroupRecord) -> user_pb2.Group:
    """Convert a group to its proto."""
    return user_pb2.Group(
        group_id=group.id,
        name=group.name,
        member_count=group.member_count,
        created_at=timestamp(group.created_at),
        updated_at=timestamp(group.updated_at),
        version=group.version,
    )


def _list_violations(request: groups_api.ListGroupsRequest) -> Iterator[Violation]:
    if not 0 <= request.page_size <= PAGE_SIZE_MAX:
        yield Violation("page_size", f"give 0 to {PAGE_SIZE_MAX}")
    if request.page_token and not is_uuid(request.page_token):
        yield Violation("page_token", "give that of the page before")
    if len(request.query) > QUERY_CHARACTERS_MAX or "\0" in request.query:
        yield Violation("query", f"give at most {QUERY_CHARACTERS_MAX} characters, no NUL")
