"""Groups over gRPC: what is stored, who belongs to them, and who is told."""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg
import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from gateway.identity.engine import groups as group_rules
from gateway.identity.engine import users as user_rules
from gateway.identity.store.memberships import GROUPS_MAX
from parley.api.identity.v1 import group_service_pb2 as groups_api
from parley.api.identity.v1 import user_pb2
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.group_service_pb2_grpc import GroupServiceStub
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceStub
from parley.bus import Notice
from parley.identity import Role, User, UserId
from support.gateway.identity_calls import ASKED, channel_to, owner_of, refused
from support.gateway.stack import GatewayStack

NO_GROUP = "00000000-0000-0000-0000-0000000000f0"


async def created(groups: Any, name: str) -> user_pb2.Group:
    answer = await groups.CreateGroup(groups_api.CreateGroupRequest(request_id=name, name=name))
    group: user_pb2.Group = answer.group
    return group


def joining(group: user_pb2.Group, user: user_pb2.User) -> groups_api.AddGroupMemberRequest:
    return groups_api.AddGroupMemberRequest(group_id=group.group_id, user_id=user.user_id)


def leaving(group: user_pb2.Group, user: user_pb2.User) -> groups_api.RemoveGroupMemberRequest:
    return groups_api.RemoveGroupMemberRequest(group_id=group.group_id, user_id=user.user_id)


def belonging_to(
    user: user_pb2.User, *group_ids: str, version: int = 0
) -> users_api.UpdateUserRequest:
    return users_api.UpdateUserRequest(
        user=user_pb2.User(user_id=user.user_id, group_ids=group_ids),
        update_mask=FieldMask(paths=["group_ids"]),
        expected_version=version,
    )


async def test_a_group_is_created_once_renamed_and_deleted(stack: GatewayStack) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        groups = GroupServiceStub(channel)
        made = await created(groups, " Research ")
        assert await created(groups, " Research ") == made
        assert (made.name, made.member_count, made.version) == ("Research", 0, 1)
        other = groups_api.CreateGroupRequest(request_id="other", name="RESEARCH")
        assert await refused(groups.CreateGroup(other)) == "NAME_TAKEN"

        rename = groups_api.RenameGroupRequest(
            group_id=made.group_id.upper(), name="research", expected_version=1
        )
        renamed = (await groups.RenameGroup(rename)).group
        assert (renamed.group_id, renamed.name, renamed.version) == (made.group_id, "research", 2)
        assert await refused(groups.RenameGroup(rename)) == "VERSION_CONFLICT"

        gone = groups_api.DeleteGroupRequest(group_id=made.group_id)
        await groups.DeleteGroup(gone)
        await groups.DeleteGroup(gone)
        read = groups_api.GetGroupRequest(group_id=made.group_id)
        assert await refused(groups.GetGroup(read)) == "GROUP_NOT_FOUND"
        again = groups_api.RenameGroupRequest(group_id=made.group_id, name="back")
        assert await refused(groups.RenameGroup(again)) == "GROUP_NOT_FOUND"
        # The name is free again, and so is the request's id.
        assert (await created(groups, " Research ")).group_id != made.group_id


async def test_groups_are_listed_by_name_in_pages(stack: GatewayStack) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        groups = GroupServiceStub(channel)
        for name in ("b", "A", "Ärzte", "c%"):
            await created(groups, name)
        found: list[str] = []
        token = ""
        while True:
            asked = groups_api.ListGroupsRequest(page_size=3, page_token=token)
            page = await groups.ListGroups(asked)
            found += [group.name for group in page.groups]
            token = page.next_page_token
            if not token:
                break
        searched = await groups.ListGroups(groups_api.ListGroupsRequest(query="C%"))
        bad = groups_api.ListGroupsRequest(page_size=201, page_token="x", query="\0")
        refusal = await refused(groups.ListGroups(bad))

    assert sorted(found) == ["A", "b", "c%", "Ärzte"]
    assert found.index("A") < found.index("b") < found.index("c%")
    assert [group.name for group in searched.groups] == ["c%"]
    assert refusal == "INVALID_REQUEST"


async def test_users_join_and_leave_groups_from_either_side(stack: GatewayStack) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        users, groups = UserServiceStub(channel), GroupServiceStub(channel)
        one, two = await created(groups, "one"), await created(groups, "two")
        asked = users_api.CreateUserRequest(**ASKED, group_ids=[one.group_id.upper()])
        ada = (await users.CreateUser(asked)).user
        assert list(ada.group_ids) == [one.group_id]

        joined = (await groups.AddGroupMember(joining(two, ada))).group
        assert (joined.member_count, joined.version) == (1, 2)
        assert (await groups.AddGroupMember(joining(two, ada))).group == joined
        read = await users.GetUser(users_api.GetUserRequest(user_id=ada.user_id))
        assert list(read.user.group_ids) == [one.group_id, two.group_id]
        assert [group.name for group in read.groups] == ["one", "two"]
        assert read.user.version == 2
        of_two = users_api.ListUsersRequest(group_id=two.group_id)
        assert list((await users.ListUsers(of_two)).users) == [read.user]

        left = (await groups.RemoveGroupMember(leaving(one, ada))).group
        assert (left.member_count, left.version) == (0, 3)
        assert (await groups.RemoveGroupMember(leaving(one, ada))).group == left
        late = belonging_to(ada, one.group_id, version=2)
        assert await refused(users.UpdateUser(late)) == "VERSION_CONFLICT"
        moved = (await users.UpdateUser(belonging_to(ada, one.group_id, version=3))).user
        assert (list(moved.group_ids), moved.version) == ([one.group_id], 4)
        nowhere = (await users.UpdateUser(belonging_to(ada))).user
        assert list(nowhere.group_ids) == []


async def test_what_is_not_there_cannot_be_joined(stack: GatewayStack) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        users, groups = UserServiceStub(channel), GroupServiceStub(channel)
        ada = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        group = await created(groups, "one")
        absent, wrong = user_pb2.Group(group_id=NO_GROUP), user_pb2.Group(group_id="x")
        nobody = user_pb2.User(user_id=NO_GROUP)
        found = [
            await refused(groups.AddGroupMember(joining(absent, ada))),
            await refused(groups.RemoveGroupMember(leaving(wrong, ada))),
            await refused(groups.AddGroupMember(joining(group, nobody))),
            await refused(groups.RemoveGroupMember(leaving(group, user_pb2.User(user_id="x")))),
            await refused(users.UpdateUser(belonging_to(ada, group.group_id, NO_GROUP))),
            await refused(users.UpdateUser(belonging_to(ada, "x"))),
            await refused(users.ListUsers(users_api.ListUsersRequest(group_id=NO_GROUP))),
            await refused(groups.DeleteGroup(groups_api.DeleteGroupRequest(group_id=NO_GROUP))),
        ]
        read = await users.GetUser(users_api.GetUserRequest(user_id=ada.user_id))

    group_not_found, user_not_found = "GROUP_NOT_FOUND", "USER_NOT_FOUND"
    assert found == [group_not_found] * 2 + [user_not_found] * 2 + [group_not_found] * 4
    assert (list(read.user.group_ids), read.user.version) == ([], 1)


async def test_a_user_belongs_to_so_many_groups_and_no_more(
    stack: GatewayStack, identity_database: str
) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        users, groups = UserServiceStub(channel), GroupServiceStub(channel)
        ada = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        last = await created(groups, "last")
        connection = await asyncpg.connect(identity_database)
        await connection.execute(
            """
            WITH made AS (
                INSERT INTO identity.groups (id, name, name_key, version, created_at, updated_at)
                SELECT gen_random_uuid(), n, n, 1, now(), now()
                FROM generate_series(1, $2::int) AS numbers (n) RETURNING id)
            INSERT INTO identity.group_members SELECT id, $1, now() FROM made
            """,
            ada.user_id,
            GROUPS_MAX,
        )
        await connection.close()
        one_more = await refused(groups.AddGroupMember(joining(last, ada)))
        many = await refused(users.UpdateUser(belonging_to(ada, *[NO_GROUP] * (GROUPS_MAX + 1))))

    assert (one_more, many) == ("TOO_MANY_GROUPS", "INVALID_REQUEST")


async def test_a_member_sees_their_own_groups_and_no_other(stack: GatewayStack) -> None:
    owner = await owner_of(stack)
    async with channel_to(stack, as_user=owner) as channel:
        users, groups = UserServiceStub(channel), GroupServiceStub(channel)
        ada = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        own, other = await created(groups, "own"), await created(groups, "other")
        await groups.AddGroupMember(joining(own, ada))
    async with channel_to(stack, as_user=User(UserId(ada.user_id), Role.MEMBER)) as channel:
        users, groups = UserServiceStub(channel), GroupServiceStub(channel)
        read = await groups.GetGroup(groups_api.GetGroupRequest(group_id=own.group_id))
        mine = await users.GetUser(users_api.GetUserRequest(user_id=ada.user_id))
        hidden = await refused(groups.GetGroup(groups_api.GetGroupRequest(group_id=other.group_id)))
        listing = await refused(groups.ListGroups(groups_api.ListGroupsRequest()))
        belongs = await groups.ListUserGroups(groups_api.ListUserGroupsRequest(user_id=ada.user_id))
        others = await refused(
            groups.ListUserGroups(groups_api.ListUserGroupsRequest(user_id=owner.id))
        )

    assert list(mine.groups) == [read.group]
    assert belongs == groups_api.ListUserGroupsResponse(groups=[read.group])
    assert others == "USER_NOT_FOUND"
    assert (read.group.name, hidden, listing) == ("own", "GROUP_NOT_FOUND", "ROLE_NOT_ALLOWED")


async def test_a_deleted_user_belongs_to_no_group_and_a_deleted_group_has_no_member(
    stack: GatewayStack,
) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        users, groups = UserServiceStub(channel), GroupServiceStub(channel)
        ada = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        kept, gone = await created(groups, "kept"), await created(groups, "gone")
        for group in (kept, gone):
            await groups.AddGroupMember(joining(group, ada))
        await groups.DeleteGroup(groups_api.DeleteGroupRequest(group_id=gone.group_id))
        read = await users.GetUser(users_api.GetUserRequest(user_id=ada.user_id))
        assert list(read.user.group_ids) == [kept.group_id]
        await users.DeactivateUser(users_api.DeactivateUserRequest(user_id=ada.user_id))
        await users.DeleteUser(users_api.DeleteUserRequest(user_id=ada.user_id))
        left = await groups.GetGroup(groups_api.GetGroupRequest(group_id=kept.group_id))
        assert left.group.member_count == 0


async def test_services_are_told_which_groups_were_deleted(stack: GatewayStack) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        groups = GroupServiceStub(channel)
        kept, gone = await created(groups, "kept"), await created(groups, "gone")
        await groups.DeleteGroup(groups_api.DeleteGroupRequest(group_id=gone.group_id))
        asked = groups_api.BatchGetGroupsRequest(
            group_ids=[gone.group_id, "x", NO_GROUP, kept.group_id.upper(), kept.group_id]
        )
        as_owner = await refused(groups.BatchGetGroups(asked))
    async with channel_to(stack, as_user=None) as channel:
        groups = GroupServiceStub(channel)
        told = await groups.BatchGetGroups(asked)
        empty = await refused(groups.BatchGetGroups(groups_api.BatchGetGroupsRequest()))

    assert told == groups_api.BatchGetGroupsResponse(
        groups=[kept], deleted_group_ids=[gone.group_id]
    )
    assert (as_owner, empty) == ("CALLER_NOT_ALLOWED", "INVALID_REQUEST")


async def test_changes_of_groups_and_of_their_members_are_told_on_the_bus(
    stack: GatewayStack,
) -> None:
    async with (
        stack.bus.subscribe(group_rules.TOPIC) as of_groups,
        stack.bus.subscribe(user_rules.TOPIC) as of_users,
        channel_to(stack, as_user=await owner_of(stack)) as channel,
    ):
        users, groups = UserServiceStub(channel), GroupServiceStub(channel)
        ada = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        assert await anext(of_users) == Notice(user_rules.TOPIC, ada.user_id, 1)
        group = await created(groups, "one")
        assert await anext(of_groups) == Notice(group_rules.TOPIC, group.group_id, 1)
        await groups.AddGroupMember(joining(group, ada))
        assert await anext(of_users) == Notice(user_rules.TOPIC, ada.user_id, 2)
        # Whoever is in a group already joins it without news.
        await groups.AddGroupMember(joining(group, ada))
        await groups.RemoveGroupMember(leaving(group, ada))
        assert await anext(of_users) == Notice(user_rules.TOPIC, ada.user_id, 3)
        await groups.DeleteGroup(groups_api.DeleteGroupRequest(group_id=group.group_id))
        assert await anext(of_groups) == Notice(group_rules.TOPIC, group.group_id, 4)


async def test_users_join_groups_while_these_are_deleted(stack: GatewayStack) -> None:
    async def attempt(call: Any) -> None:
        # Whoever comes too late is refused; what counts is what is left.
        with suppress(grpc.aio.AioRpcError):
            await call

    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        users, groups = UserServiceStub(channel), GroupServiceStub(channel)
        ada = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        several = [await created(groups, str(number)) for number in range(8)]
        async with asyncio.TaskGroup() as tasks:
            for group in several:
                tasks.create_task(attempt(groups.AddGroupMember(joining(group, ada))))
            for group in several[:5]:
                gone = groups_api.DeleteGroupRequest(group_id=group.group_id)
                tasks.create_task(attempt(groups.DeleteGroup(gone)))
        read = await users.GetUser(users_api.GetUserRequest(user_id=ada.user_id))

    assert list(read.user.group_ids) == [group.group_id for group in several[5:]]
