"""Users are created, changed, locked out and deleted, and everyone who must know is told."""

from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from gateway.identity.engine.users import TOPIC
from parley.api.identity.v1 import access_pb2, user_pb2
from parley.api.identity.v1 import token_service_pb2 as tokens_api
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.token_service_pb2_grpc import ServiceTokenServiceStub
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceStub
from parley.bus import Notice
from parley.identity import Role, User, UserId
from support.gateway.identity_calls import ASKED, channel_to, owner_of, refused
from support.gateway.stack import GatewayStack


async def test_a_user_is_created_once_changed_locked_out_taken_back_and_deleted(
    stack: GatewayStack,
) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        users = UserServiceStub(channel)
        made = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        again = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        assert made == again
        assert (made.login, made.display_name, made.version) == ("ada", "ada", 1)

        changed = await users.UpdateUser(
            users_api.UpdateUserRequest(
                user=user_pb2.User(user_id=made.user_id, display_name="Ada"),
                update_mask=FieldMask(paths=["display_name"]),
                expected_version=1,
            )
        )
        assert (changed.user.display_name, changed.user.login) == ("Ada", "ada")
        late = users_api.UpdateUserRequest(
            user=user_pb2.User(user_id=made.user_id, email="a@example.org"),
            update_mask=FieldMask(paths=["email"]),
            expected_version=1,
        )
        assert await refused(users.UpdateUser(late)) == "VERSION_CONFLICT"

        named = users_api.DeactivateUserRequest(user_id=made.user_id)
        gone = users_api.DeleteUserRequest(user_id=made.user_id)
        assert await refused(users.DeleteUser(gone)) == "USER_STILL_ACTIVE"
        locked = (await users.DeactivateUser(named)).user
        assert locked.state == user_pb2.USER_STATE_DEACTIVATED
        assert (await users.DeactivateUser(named)).user == locked
        back = users_api.UpdateUserRequest(
            user=user_pb2.User(user_id=made.user_id, state=user_pb2.USER_STATE_ACTIVE),
            update_mask=FieldMask(paths=["state"]),
        )
        assert (await users.UpdateUser(back)).user.state == user_pb2.USER_STATE_ACTIVE
        await users.DeactivateUser(named)
        await users.DeleteUser(gone)
        await users.DeleteUser(gone)
        read = users_api.GetUserRequest(user_id=made.user_id)
        assert await refused(users.GetUser(read)) == "USER_NOT_FOUND"
        listed = await users.ListUsers(users_api.ListUsersRequest())
        assert [user.login for user in listed.users] == ["owner"]
        # The login is free again.
        anew = users_api.CreateUserRequest(**(ASKED | {"request_id": "r2"}))
        assert (await users.CreateUser(anew)).user.user_id != made.user_id
    async with channel_to(stack, as_user=None) as channel:
        assert await refused(UserServiceStub(channel).GetUser(read)) == "USER_DELETED"


async def test_a_request_id_is_good_for_one_request(stack: GatewayStack) -> None:
    owner = await owner_of(stack)
    async with channel_to(stack, as_user=owner) as channel:
        users = UserServiceStub(channel)
        made = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        again = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        other = users_api.CreateUserRequest(**(ASKED | {"login": "somebody-else"}))

        assert again == made
        assert await refused(users.CreateUser(other)) == "REQUEST_ID_REUSED"


async def test_users_read_themselves_and_change_their_name_and_address_alone(
    stack: GatewayStack,
) -> None:
    owner = await owner_of(stack)
    async with channel_to(stack, as_user=owner) as channel:
        users = UserServiceStub(channel)
        me = (await users.GetMe(users_api.GetMeRequest(signed_in_by="session"))).me
        change = users_api.UpdateMeRequest(
            me=user_pb2.Me(display_name="Ada", login="ada"),
            update_mask=FieldMask(paths=["display_name"]),
            expected_version=me.version,
            signed_in_by="session",
        )
        changed = (await users.UpdateMe(change)).me
        late = await refused(users.UpdateMe(change))
        change.update_mask.paths[:] = ["login"]
        higher = await refused(users.UpdateMe(change))

    assert (me.user_id, me.role, me.signed_in_by) == (owner.id, access_pb2.ROLE_OWNER, "session")
    me.MergeFrom(user_pb2.Me(display_name="Ada", version=me.version + 1))
    assert changed == me
    assert (late, higher) == ("VERSION_CONFLICT", "INVALID_REQUEST")


async def test_every_change_is_told_on_the_bus(stack: GatewayStack) -> None:
    owner = await owner_of(stack)
    async with (
        stack.bus.subscribe(TOPIC) as notices,
        channel_to(stack, as_user=owner) as channel,
    ):
        users = UserServiceStub(channel)
        made = (await users.CreateUser(users_api.CreateUserRequest(**ASKED))).user
        assert await anext(notices) == Notice(TOPIC, made.user_id, 1)
        await users.DeactivateUser(users_api.DeactivateUserRequest(user_id=made.user_id))
        assert await anext(notices) == Notice(TOPIC, made.user_id, 2)
        await users.DeleteUser(users_api.DeleteUserRequest(user_id=made.user_id))
        assert await anext(notices) == Notice(TOPIC, made.user_id, 3)


async def test_whoever_is_locked_out_has_no_token_that_is_good(stack: GatewayStack) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        users, tokens = UserServiceStub(channel), ServiceTokenServiceStub(channel)
        asked = ASKED | {"role": access_pb2.ROLE_ADMIN}
        made = (await users.CreateUser(users_api.CreateUserRequest(**asked))).user
        async with channel_to(stack, as_user=User(UserId(made.user_id), Role.ADMIN)) as own:
            for number in range(2):
                await ServiceTokenServiceStub(own).IssueServiceToken(
                    tokens_api.IssueServiceTokenRequest(
                        request_id=f"t{number}", name="nightly", scopes=["chat:read"]
                    )
                )
        await users.DeactivateUser(users_api.DeactivateUserRequest(user_id=made.user_id))
        left = await tokens.ListServiceTokens(
            tokens_api.ListServiceTokensRequest(user_id=made.user_id)
        )
        assert not left.service_tokens
    async with channel_to(stack, as_user=None) as channel:
        watching = ServiceTokenServiceStub(channel).WatchRevocations(
            tokens_api.WatchRevocationsRequest()
        )
        known = 0
        while known < 2:
            said: Any = await watching.read()
            known += len(said.snapshot.revoked_tokens) + len(said.change.revoked_tokens)
        watching.cancel()


async def test_what_cannot_be_is_refused(stack: GatewayStack) -> None:
    owner = await owner_of(stack)
    async with channel_to(stack, as_user=owner) as channel:
        users = UserServiceStub(channel)
        alone = users_api.DeactivateUserRequest(user_id=owner.id)
        assert await refused(users.DeactivateUser(alone)) == "LAST_OWNER"
        nobody = users_api.DeactivateUserRequest(user_id="00000000-0000-0000-0000-000000000001")
        assert await refused(users.DeactivateUser(nobody)) == "USER_NOT_FOUND"
        wrong = users_api.CreateUserRequest(request_id="", login="Not A Login")
        assert await refused(users.CreateUser(wrong)) == "INVALID_REQUEST"
        for login in (".", ".."):
            folder = users_api.CreateUserRequest(**(ASKED | {"login": login}))
            assert await refused(users.CreateUser(folder)) == "INVALID_REQUEST"
            renamed = users_api.UpdateUserRequest(
                user=user_pb2.User(user_id=owner.id, login=login),
                update_mask=FieldMask(paths=["login"]),
            )
            assert await refused(users.UpdateUser(renamed)) == "INVALID_REQUEST"
        taken = users_api.CreateUserRequest(**(ASKED | {"login": "owner"}))
        assert await refused(users.CreateUser(taken)) == "LOGIN_TAKEN"
        grouped = users_api.CreateUserRequest(**(ASKED | {"group_ids": ["g"]}))
        assert await refused(users.CreateUser(grouped)) == "GROUP_NOT_FOUND"
        unknown = users_api.UpdateUserRequest(
            user=user_pb2.User(user_id=owner.id), update_mask=FieldMask(paths=["version"])
        )
        assert await refused(users.UpdateUser(unknown)) == "INVALID_REQUEST"
    admin = User(UserId("00000000-0000-0000-0000-000000000002"), Role.ADMIN)
    async with channel_to(stack, as_user=admin) as channel:
        users = UserServiceStub(channel)
        above = users_api.CreateUserRequest(**(ASKED | {"role": access_pb2.ROLE_OWNER}))
        assert await refused(users.CreateUser(above)) == "ROLE_EXCEEDS_CALLER"
        assert await refused(users.DeactivateUser(alone)) == "ROLE_EXCEEDS_CALLER"
