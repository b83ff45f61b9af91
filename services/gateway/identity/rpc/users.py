"""Serves users: reading and managing."""

from collections.abc import Iterable, Iterator

import grpc

from gateway.identity.domain import UserKind, UserRecord, UserState
from gateway.identity.engine.service_tokens import PAGE_SIZE_MAX, is_uuid
from gateway.identity.engine.users import NewUser, UserChange, Users
from gateway.identity.errors import GroupNotFound, InvalidRequest, UserDeleted, UserNotFound
from gateway.identity.rpc.groups import group_to_proto
from gateway.identity.rpc.service_tokens import calling_user, timestamp
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.groups import GroupStore
from parley.api.identity.v1 import access_pb2, user_pb2
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceServicer
from parley.identity import Role
from parley.rpc import Violation, current_caller

BATCH_MAX = 500
LIST_DEFAULT = 50
PEOPLE_IDS_MAX = 100
PEOPLE_MAX = 50
PEOPLE_DEFAULT = 20
PEOPLE_QUERY_CHARACTERS_MAX = 64
QUERY_CHARACTERS_MAX = 128

ROLES = {role: access_pb2.Role.Value(f"ROLE_{role.name}") for role in Role}
STATES = {
    UserState.ACTIVE: user_pb2.USER_STATE_ACTIVE,
    UserState.DEACTIVATED: user_pb2.USER_STATE_DEACTIVATED,
}
KINDS = {kind: user_pb2.UserKind.Value(f"USER_KIND_{kind.name}") for kind in UserKind}
READERS_OF_ALL_USERS = frozenset({Role.OWNER, Role.ADMIN, Role.AUDITOR})


class UserServicer(UserServiceServicer):
    """Serves users."""

    def __init__(self, people: IdentityStore, users: Users, groups: GroupStore) -> None:
        self._identity_store = people
        self._users = users
        self._groups = groups

    async def GetUser(  # noqa: N802 (the name is the proto's)
        self, request: users_api.GetUserRequest, context: grpc.aio.ServicerContext
    ) -> users_api.GetUserResponse:
        """Return one user; a member sees only themselves."""
        reader = current_caller().user
        may_see = (
            reader is None
            or reader.role in READERS_OF_ALL_USERS
            or reader.id == request.user_id.lower()
        )
        is_found = may_see and is_uuid(request.user_id)
        user = await self._identity_store.find_user(request.user_id) if is_found else None
        if user is not None and user.state is UserState.DELETED and reader is None:
            raise UserDeleted(request.user_id)
        if user is None or user.state is UserState.DELETED:
            raise UserNotFound(request.user_id)
        groups = await self._groups.of_user(user.id)
        return users_api.GetUserResponse(
            user=user_to_proto(user, [group.id for group in groups]),
            groups=map(group_to_proto, groups),
        )

    async def GetMe(  # noqa: N802 (the name is the proto's)
        self, request: users_api.GetMeRequest, context: grpc.aio.ServicerContext
    ) -> users_api.GetMeResponse:
        """Return the caller."""
        caller = calling_user()
        user = await self._identity_store.find_user(caller.id)
        if user is None or user.state is UserState.DELETED:
            raise UserNotFound(caller.id)
        return users_api.GetMeResponse(me=_me_to_proto(user, request.signed_in_by))

    async def UpdateMe(  # noqa: N802 (the name is the proto's)
        self, request: users_api.UpdateMeRequest, context: grpc.aio.ServicerContext
    ) -> users_api.UpdateMeResponse:
        """Change the caller's own name and email address."""
        caller = calling_user()
        asked = UserChange(
            user_id=caller.id,
            fields=frozenset(request.update_mask.paths),
            display_name=request.me.display_name,
            email=request.me.email,
            expected_version=request.expected_version,
        )
        user = await self._users.change_own(caller, asked)
        return users_api.UpdateMeResponse(me=_me_to_proto(user, request.signed_in_by))

    async def BatchGetUsers(  # noqa: N802 (the name is the proto's)
        self, request: users_api.BatchGetUsersRequest, context: grpc.aio.ServicerContext
    ) -> users_api.BatchGetUsersResponse:
        """Return several users; unknown ids are left out."""
        if not 1 <= len(request.user_ids) <= BATCH_MAX:
            raise InvalidRequest(Violation("user_ids", f"give 1 to {BATCH_MAX} ids"))
        wanted = [user_id.lower() for user_id in request.user_ids if is_uuid(user_id)]
        found = {
            str(user.id): user
            for user in await self._identity_store.find_users(wanted)
            if user.state is not UserState.DELETED
        }
        return users_api.BatchGetUsersResponse(
            users=[_name_to_proto(found[id_]) for id_ in dict.fromkeys(wanted) if id_ in found]
        )

    async def FindPeople(  # noqa: N802 (the name is the proto's)
        self, request: users_api.FindPeopleRequest, context: grpc.aio.ServicerContext
    ) -> users_api.FindPeopleResponse:
        """Find users by name, or the names of ids."""
        query = request.query.strip()
        if bool(query) == bool(request.user_ids) or len(query) > PEOPLE_QUERY_CHARACTERS_MAX:
            detail = f"give either ids or a query of 1 to {PEOPLE_QUERY_CHARACTERS_MAX} characters"
            raise InvalidRequest(Violation("query", detail))
        if len(request.user_ids) > PEOPLE_IDS_MAX:
            raise InvalidRequest(Violation("user_ids", f"give at most {PEOPLE_IDS_MAX} ids"))
        if not 0 <= request.limit <= PEOPLE_MAX:
            raise InvalidRequest(Violation("limit", f"give 1 to {PEOPLE_MAX}"))
        if request.user_ids:
            named = users_api.BatchGetUsersRequest(user_ids=request.user_ids)
            people = (await self.BatchGetUsers(named, context)).users
            return users_api.FindPeopleResponse(people=people)
        found = await self._identity_store.find_people(query, request.limit or PEOPLE_DEFAULT)
        return users_api.FindPeopleResponse(people=map(_name_to_proto, found))

    async def ListUsers(  # noqa: N802 (the name is the proto's)
        self, request: users_api.ListUsersRequest, context: grpc.aio.ServicerContext
    ) -> users_api.ListUsersResponse:
        """List users, ordered by login."""
        violations = tuple(_list_violations(request))
        if violations:
            raise InvalidRequest(*violations)
        if request.group_id:
            await self._require_group(request.group_id)
        size = request.page_size or LIST_DEFAULT
        states = {value: state for state, value in STATES.items()}
        users = await self._identity_store.list_users(
            after_login=request.page_token,
            limit=size + 1,
            state=states.get(request.state),
            query=request.query,
            group_id=request.group_id,
        )
        has_more = len(users) > size
        group_ids = await self._groups.ids_of_users([user.id for user in users[:size]])
        return users_api.ListUsersResponse(
            users=[user_to_proto(user, group_ids[user.id]) for user in users[:size]],
            next_page_token=users[size - 1].login if has_more else "",
        )

    async def CreateUser(  # noqa: N802 (the name is the proto's)
        self, request: users_api.CreateUserRequest, context: grpc.aio.ServicerContext
    ) -> users_api.CreateUserResponse:
        """Create a user; a repeated request returns the same one."""
        asked = NewUser(
            request.request_id,
            request.login,
            request.display_name,
            request.email,
            _role_of(request.role),
            tuple(request.group_ids),
            _kind_of(request.kind),
        )
        user = await self._users.create(calling_user(), asked)
        return users_api.CreateUserResponse(user=await self._shown(user))

    async def UpdateUser(  # noqa: N802 (the name is the proto's)
        self, request: users_api.UpdateUserRequest, context: grpc.aio.ServicerContext
    ) -> users_api.UpdateUserResponse:
        """Change the fields of the update mask."""
        given = request.user
        asked = UserChange(
            user_id=given.user_id,
            fields=frozenset(request.update_mask.paths),
            login=given.login,
            display_name=given.display_name,
            email=given.email,
            role=_role_of(given.role),
            state={value: state for state, value in STATES.items()}.get(given.state),
            group_ids=tuple(given.group_ids),
            expected_version=request.expected_version,
        )
        user = await self._users.change(calling_user(), asked)
        return users_api.UpdateUserResponse(user=await self._shown(user))

    async def DeactivateUser(  # noqa: N802 (the name is the proto's)
        self, request: users_api.DeactivateUserRequest, context: grpc.aio.ServicerContext
    ) -> users_api.DeactivateUserResponse:
        """Deactivate a user."""
        user = await self._users.deactivate(calling_user(), request.user_id)
        return users_api.DeactivateUserResponse(user=await self._shown(user))

    async def DeleteUser(  # noqa: N802 (the name is the proto's)
        self, request: users_api.DeleteUserRequest, context: grpc.aio.ServicerContext
    ) -> users_api.DeleteUserResponse:
        """Delete a deactivated user."""
        await self._users.delete(calling_user(), request.user_id)
        return users_api.DeleteUserResponse()

    async def _shown(self, user: UserRecord) -> user_pb2.User:
        group_ids = await self._groups.ids_of_users((user.id,))
        return user_to_proto(user, group_ids[user.id])

    async def _require_group(self, group_id: str) -> None:
        if not is_uuid(group_id) or await self._groups.find(group_id) is None:
            raise GroupNotFound(group_id)


def user_to_proto(user: UserRecord, group_ids: Iterable[str]) -> user_pb2.User:
    """Convert a user to its proto."""
    return user_pb2.User(
        user_id=user.id,
        login=user.login,
        display_name=user.display_name,
        email=user.email,
        role=ROLES[user.role],
        state=STATES[user.state],
        group_ids=group_ids,
        version=user.version,
        created_at=timestamp(user.created_at),
        updated_at=timestamp(user.updated_at),
        deactivated_at=None if user.deactivated_at is None else timestamp(user.deactivated_at),
        kind=KINDS[user.kind],
    )


def _me_to_proto(user: UserRecord, signed_in_by: str) -> user_pb2.Me:
    return user_pb2.Me(
        user_id=user.id,
        login=user.login,
        display_name=user.display_name,
        email=user.email,
        role=ROLES[user.role],
        created_at=timestamp(user.created_at),
        signed_in_by=signed_in_by,
        version=user.version,
    )


def _name_to_proto(user: UserRecord) -> user_pb2.UserName:
    return user_pb2.UserName(
        user_id=user.id,
        login=user.login,
        display_name=user.display_name,
        state=STATES[user.state],
    )


def _list_violations(request: users_api.ListUsersRequest) -> Iterator[Violation]:
    if not 0 <= request.page_size <= PAGE_SIZE_MAX:
        yield Violation("page_size", f"give 0 to {PAGE_SIZE_MAX}")
    if len(request.query) > QUERY_CHARACTERS_MAX:
        yield Violation("query", f"give at most {QUERY_CHARACTERS_MAX} characters")
    for name in ("query", "page_token"):
        if "\0" in getattr(request, name):
            yield Violation(name, "leave out the NUL character")


def _kind_of(value: "user_pb2.UserKind.ValueType") -> UserKind:
    return {known: kind for kind, known in KINDS.items()}.get(value, UserKind.PERSON)


def _role_of(value: "access_pb2.Role.ValueType") -> Role | None:
    return {known: role for role, known in ROLES.items()}.get(value)
