"""HTTP routes of users: the caller, and the administration of users."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.chat_requests import given_fields
from gateway.api.convert.users import managed_user_to_json, user_to_json
from gateway.api.inputs.chats import Nothing
from gateway.api.inputs.users import MePatch, NewUserInput, UserPatch
from gateway.api.paging import page_request, page_to_json
from gateway.api.path_parameters import user_id_of
from gateway.http.authentication import Principal
from gateway.http.preconditions import (
    conditional,
    expected_version,
    if_match,
    refuse_condition,
    tagged,
    tagged_response,
)
from gateway.http.request_body import (
    idempotency_key,
    invalid_parameter,
    read_json,
    read_optional_json,
    read_patch,
    read_query,
)
from gateway.http.responses import json_response
from gateway.identity.domain import UserRecord, UserState
from gateway.identity.engine.users import NewUser, UserChange, Users
from gateway.identity.errors import UserNotFound
from gateway.identity.store.credentials import IdentityStore

PAGE_LENGTH = 50
QUERY_CHARACTERS_MAX = 128
LISTED_STATES = (UserState.ACTIVE, UserState.DEACTIVATED)


class UserRoutes:
    """The routes /me and /users."""

    def __init__(self, users: Users, people: IdentityStore, *, new_id: Callable[[], str]) -> None:
        self._users = users
        self._identity_store = people
        self._new_id = new_id

    async def me(self, request: Request, principal: Principal) -> Response:
        """Return the signed-in user, and the kind of credential."""
        read_query(request)
        return tagged_response(
            request, _me_to_json(principal, principal.record), _tag(principal.record)
        )

    async def update_me(self, request: Request, principal: Principal) -> Response:
        """Change the caller's name and email address."""
        read_query(request)
        tag = if_match(request)
        body = await read_patch(request, MePatch)
        with conditional(tag):
            changed = await self._users.change_own(
                principal.user, _change(principal.user.id, given_fields(body), tag)
            )
        return json_response(_me_to_json(principal, changed), headers=tagged(_tag(changed)))

    async def create(self, request: Request, principal: Principal) -> Response:
        """Create an active user."""
        read_query(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewUserInput)
        asked = NewUser(
            request_id=key,
            login=body.login,
            display_name=body.display_name or "",
            email=body.email,
            role=body.role,
        )
        user = await self._users.create(principal.user, asked)
        headers = {"location": f"/api/v1/users/{user.id}", **tagged(_tag(user))}
        return json_response(managed_user_to_json(user), status=201, headers=headers)

    async def list(self, request: Request, principal: Principal) -> Response:
        """List users, ordered by login."""
        query = read_query(request, "q", "state", "limit", "cursor")
        page = page_request(query)
        text = query.get("q", "")
        if len(text) > QUERY_CHARACTERS_MAX:
            raise invalid_parameter("q", f"Give at most {QUERY_CHARACTERS_MAX} characters.")
        size = page.page_size or PAGE_LENGTH
        users = await self._identity_store.list_users(
            after_login=page.page_token,
            limit=size + 1,
            state=_state(query.get("state")),
            query=text,
        )
        items = map(managed_user_to_json, users[:size])
        next_login = users[size - 1].login if len(users) > size else ""
        return json_response(page_to_json(items, next_login))

    async def read(self, request: Request, principal: Principal) -> Response:
        """Read one user."""
        read_query(request)
        user_id = user_id_of(request)
        user = await self._identity_store.find_user(user_id)
        if user is None or user.state is UserState.DELETED:
            raise UserNotFound(user_id)
        return tagged_response(request, managed_user_to_json(user), _tag(user))

    async def update(self, request: Request, principal: Principal) -> Response:
        """Change login, name, email address or role."""
        read_query(request)
        user_id, tag = user_id_of(request), if_match(request)
        body = await read_patch(request, UserPatch)
        return await self._changed(principal, _change(user_id, given_fields(body), tag), tag)

    async def deactivate(self, request: Request, principal: Principal) -> Response:
        """Deactivate a user; idempotent."""
        read_query(request)
        refuse_condition(request)
        user_id = user_id_of(request)
        await read_optional_json(request, Nothing)
        user = await self._users.deactivate(principal.user, user_id)
        return json_response(managed_user_to_json(user), headers=tagged(_tag(user)))

    async def reactivate(self, request: Request, principal: Principal) -> Response:
        """Reactivate a user; their old keys stay revoked."""
        read_query(request)
        user_id, tag = user_id_of(request), if_match(request)
        await read_optional_json(request, Nothing)
        return await self._changed(
            principal, _change(user_id, {"state": UserState.ACTIVE}, tag), tag
        )

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Delete a deactivated user permanently."""
        read_query(request)
        refuse_condition(request)
        await self._users.delete(principal.user, user_id_of(request))
        return Response(status_code=204)

    async def _changed(self, principal: Principal, asked: UserChange, tag: str) -> Response:
        with conditional(tag):
            user = await self._users.change(principal.user, asked)
        return json_response(managed_user_to_json(user), headers=tagged(_tag(user)))


def _change(user_id: str, given: dict[str, Any], tag: str) -> UserChange:
    if given.get("email", "") is None:
        given["email"] = ""
    return UserChange(
        user_id=user_id,
        fields=frozenset(given),
        expected_version=expected_version(tag),
        **given,
    )


def _me_to_json(principal: Principal, user: UserRecord) -> dict[str, object]:
    return user_to_json(user) | {"signed_in_by": principal.credential}


def _tag(user: UserRecord) -> str:
    return str(user.version)


def _state(text: str | None) -> UserState | None:
    if text is None:
        return None
    if text not in LISTED_STATES:
        raise invalid_parameter("state", f"Give one of {', '.join(LISTED_STATES)}.")
    return UserState(text)
