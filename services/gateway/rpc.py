"""The gRPC side of the gateway: service tokens, their revocations, and users by id."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.identity_errors import InvalidRequest, UserNotFound
from gateway.identity_store import IdentityStore
from gateway.records import RevokedSet, RevokedToken, ServiceTokenRecord, UserRecord, UserState
from gateway.revocation_feed import RevocationFeed
from gateway.service_tokens import PAGE_SIZE_MAX, NewToken, ServiceTokens, is_uuid
from parley.api.identity.v1 import access_pb2, token_pb2, user_pb2
from parley.api.identity.v1 import token_service_pb2 as tokens_api
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.token_service_pb2_grpc import (
    ServiceTokenServiceServicer,
)
from parley.api.identity.v1.user_service_pb2_grpc import (
    UserServiceServicer,
)
from parley.clock import Clock
from parley.identity import Role, User
from parley.rpc import Violation, current_caller

HEARTBEAT_S = 15.0
CHANGE_TOKENS_MAX = 1000
BATCH_MAX = 500
LIST_DEFAULT = 50
QUERY_CHARACTERS_MAX = 128

ROLES = {role: access_pb2.Role.Value(f"ROLE_{role.name}") for role in Role}
STATES = {state: user_pb2.UserState.Value(f"USER_STATE_{state.name}") for state in UserState}
SEES_EVERYONE = frozenset({Role.OWNER, Role.ADMIN, Role.AUDITOR})


class ServiceTokenServicer(ServiceTokenServiceServicer):
    """Serves service tokens and lets the other services follow their revocations."""

    def __init__(self, tokens: ServiceTokens, feed: RevocationFeed, *, clock: Clock) -> None:
        self._tokens = tokens
        self._feed = feed
        self._clock = clock

    async def IssueServiceToken(  # noqa: N802 (the name is the proto's)
        self, request: tokens_api.IssueServiceTokenRequest, context: grpc.aio.ServicerContext
    ) -> tokens_api.IssueServiceTokenResponse:
        """Issue a token; its text is in this answer only."""
        asked = NewToken(
            request_id=request.request_id,
            name=request.name,
            scopes=tuple(request.scopes),
            user_id=request.user_id,
            lifetime_s=request.lifetime_s,
        )
        issued = await self._tokens.issue(_calling_user(), asked)
        return tokens_api.IssueServiceTokenResponse(
            service_token=token_to_proto(issued.record), token=issued.text
        )

    async def ListServiceTokens(  # noqa: N802 (the name is the proto's)
        self, request: tokens_api.ListServiceTokensRequest, context: grpc.aio.ServicerContext
    ) -> tokens_api.ListServiceTokensResponse:
        """List tokens, newest first."""
        page = await self._tokens.page(
            page_size=request.page_size,
            page_token=request.page_token,
            user_id=request.user_id,
            include_ended=request.include_ended,
        )
        return tokens_api.ListServiceTokensResponse(
            service_tokens=map(token_to_proto, page.records), next_page_token=page.next_page_token
        )

    async def RevokeServiceToken(  # noqa: N802 (the name is the proto's)
        self, request: tokens_api.RevokeServiceTokenRequest, context: grpc.aio.ServicerContext
    ) -> tokens_api.RevokeServiceTokenResponse:
        """Revoke a token for good."""
        record = await self._tokens.revoke(request.token_id)
        return tokens_api.RevokeServiceTokenResponse(service_token=token_to_proto(record))

    async def WatchRevocations(  # noqa: N802 (the name is the proto's)
        self, request: tokens_api.WatchRevocationsRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[tokens_api.WatchRevocationsResponse]:
        """Send the revoked set, then what is added to it, and signs of life."""
        known = await self._feed.current()
        yield _snapshot(known)
        while True:
            newer = await self._feed.newer_than(known.version, within_s=HEARTBEAT_S)
            if newer is None:
                yield _heartbeat(known.version, self._clock.now())
                continue
            for change in _changes(known.version, newer):
                yield change
            known = newer


class UserServicer(UserServiceServicer):
    """Serves what other services may know of users; managing them is not served yet."""

    def __init__(self, people: IdentityStore) -> None:
        self._people = people

    async def GetUser(  # noqa: N802 (the name is the proto's)
        self, request: users_api.GetUserRequest, context: grpc.aio.ServicerContext
    ) -> users_api.GetUserResponse:
        """Read one user; to a member everyone else looks absent."""
        reader = current_caller().user
        may_see = (
            reader is None or reader.role in SEES_EVERYONE or reader.id == request.user_id.lower()
        )
        is_found = may_see and is_uuid(request.user_id)
        user = await self._people.find_user(request.user_id) if is_found else None
        if user is None:
            raise UserNotFound(request.user_id)
        return users_api.GetUserResponse(user=user_to_proto(user))

    async def BatchGetUsers(  # noqa: N802 (the name is the proto's)
        self, request: users_api.BatchGetUsersRequest, context: grpc.aio.ServicerContext
    ) -> users_api.BatchGetUsersResponse:
        """Name several users at once; unknown ids are left out."""
        if not 1 <= len(request.user_ids) <= BATCH_MAX:
            raise InvalidRequest(Violation("user_ids", f"give 1 to {BATCH_MAX} ids"))
        wanted = [user_id.lower() for user_id in request.user_ids if is_uuid(user_id)]
        found = {str(user.id): user for user in await self._people.find_users(wanted)}
        return users_api.BatchGetUsersResponse(
            users=[_name_to_proto(found[id_]) for id_ in dict.fromkeys(wanted) if id_ in found]
        )

    async def ListUsers(  # noqa: N802 (the name is the proto's)
        self, request: users_api.ListUsersRequest, context: grpc.aio.ServicerContext
    ) -> users_api.ListUsersResponse:
        """List users by login."""
        violations = tuple(_list_violations(request))
        if violations:
            raise InvalidRequest(*violations)
        size = request.page_size or LIST_DEFAULT
        states = {value: state for state, value in STATES.items()}
        users = await self._people.list_users(
            after_login=request.page_token,
            limit=size + 1,
            state=states.get(request.state),
            query=request.query,
        )
        has_more = len(users) > size
        return users_api.ListUsersResponse(
            users=map(user_to_proto, users[:size]),
            next_page_token=users[size - 1].login if has_more else "",
        )


def token_to_proto(record: ServiceTokenRecord) -> token_pb2.ServiceToken:
    """Return what callers see of a token."""
    return token_pb2.ServiceToken(
        token_id=record.id,
        name=record.name,
        user_id=record.user_id,
        scopes=record.scopes,
        issued_by_user_id=record.issued_by_user_id,
        issued_at=_timestamp(record.issued_at),
        expires_at=_timestamp(record.expires_at),
        revoked_at=None if record.revoked_at is None else _timestamp(record.revoked_at),
    )


def user_to_proto(user: UserRecord) -> user_pb2.User:
    """Return what callers see of a user."""
    return user_pb2.User(
        user_id=user.id,
        login=user.login,
        display_name=user.display_name,
        email=user.email,
        role=ROLES[user.role],
        state=STATES[user.state],
        version=user.version,
        created_at=_timestamp(user.created_at),
        updated_at=_timestamp(user.updated_at),
        deactivated_at=None if user.deactivated_at is None else _timestamp(user.deactivated_at),
    )


def _name_to_proto(user: UserRecord) -> user_pb2.UserName:
    return user_pb2.UserName(
        user_id=user.id,
        login=user.login,
        display_name=user.display_name,
        state=STATES[user.state],
    )


def _calling_user() -> User:
    user = current_caller().user
    # The method's rule accepts calls for users only, so the guard let no other in.
    assert user is not None
    return user


def _list_violations(request: users_api.ListUsersRequest) -> Iterator[Violation]:
    if not 0 <= request.page_size <= PAGE_SIZE_MAX:
        yield Violation("page_size", f"give 0 to {PAGE_SIZE_MAX}")
    if len(request.query) > QUERY_CHARACTERS_MAX:
        yield Violation("query", f"give at most {QUERY_CHARACTERS_MAX} characters")
    if request.group_id:
        yield Violation("group_id", "there are no groups yet; leave it empty")
    for name in ("query", "page_token"):
        if "\0" in getattr(request, name):
            yield Violation(name, "leave out the NUL character")


def _snapshot(known: RevokedSet) -> tokens_api.WatchRevocationsResponse:
    snapshot = tokens_api.RevocationSnapshot(
        version=known.version, revoked_tokens=map(_revoked_to_proto, known.tokens)
    )
    return tokens_api.WatchRevocationsResponse(snapshot=snapshot)


def _changes(version: int, newer: RevokedSet) -> Iterator[tokens_api.WatchRevocationsResponse]:
    """Yield what leads from `version` to `newer`, in pieces that each name their own version."""
    added = [token for token in newer.tokens if token.revocation > version]
    for start in range(0, len(added), CHANGE_TOKENS_MAX):
        piece = added[start : start + CHANGE_TOKENS_MAX]
        is_last = start + CHANGE_TOKENS_MAX >= len(added)
        reached = newer.version if is_last else piece[-1].revocation
        change = tokens_api.RevocationChange(
            previous_version=version,
            version=reached,
            revoked_tokens=map(_revoked_to_proto, piece),
        )
        yield tokens_api.WatchRevocationsResponse(change=change)
        version = reached


def _heartbeat(version: int, now: datetime) -> tokens_api.WatchRevocationsResponse:
    heartbeat = tokens_api.RevocationHeartbeat(version=version, sent_at=_timestamp(now))
    return tokens_api.WatchRevocationsResponse(heartbeat=heartbeat)


def _revoked_to_proto(token: RevokedToken) -> token_pb2.RevokedToken:
    return token_pb2.RevokedToken(token_id=token.id, expires_at=_timestamp(token.expires_at))


def _timestamp(moment: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp
