"""HTTP routes of groups: managing them and their members, and reading one's own."""

from collections.abc import Callable

from msgspec import UnsetType
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.users import group_to_json, managed_user_to_json
from gateway.api.inputs.users import GroupPatch, NewGroupInput
from gateway.api.paging import page_request, page_to_json
from gateway.api.path_parameters import group_id_of, user_id_of
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
    read_patch,
    read_query,
)
from gateway.http.responses import json_response
from gateway.identity.domain import GroupRecord, UserState
from gateway.identity.engine.groups import GroupRename, Groups, NewGroup, name_key
from gateway.identity.engine.service_tokens import is_uuid
from gateway.identity.errors import UserNotFound
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.groups import GroupStore

PAGE_LENGTH = 50
QUERY_CHARACTERS_MAX = 128


class GroupRoutes:
    """The routes /groups, and those that list a user's groups."""

    def __init__(
        self,
        groups: Groups,
        store: GroupStore,
        people: IdentityStore,
        *,
        new_id: Callable[[], str],
    ) -> None:
        self._groups = groups
        self._store = store
        self._identity_store = people
        self._new_id = new_id

    async def list(self, request: Request, principal: Principal) -> Response:
        """List groups, ordered by name."""
        query = read_query(request, "q", "limit", "cursor")
        page = page_request(query)
        if page.page_token and not is_uuid(page.page_token):
            raise invalid_parameter("cursor", "Give next_cursor of the page before.")
        text = query.get("q", "")
        if len(text) > QUERY_CHARACTERS_MAX:
            raise invalid_parameter("q", f"Give at most {QUERY_CHARACTERS_MAX} characters.")
        size = page.page_size or PAGE_LENGTH
        found = await self._store.page(after=page.page_token, limit=size + 1, query=name_key(text))
        next_id = found[size - 1].id if len(found) > size else ""
        return json_response(page_to_json(map(group_to_json, found[:size]), next_id))

    async def create(self, request: Request, principal: Principal) -> Response:
        """Create a group without members."""
        read_query(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewGroupInput)
        group = await self._groups.create(principal.user, NewGroup(key, body.name))
        headers = {"location": f"/api/v1/groups/{group.id}", **tagged(_tag(group))}
        return json_response(group_to_json(group), status=201, headers=headers)

    async def read(self, request: Request, principal: Principal) -> Response:
        """Return a group; a member sees only their own groups."""
        read_query(request)
        group = await self._groups.read(principal.user, group_id_of(request))
        return tagged_response(request, group_to_json(group), _tag(group))

    async def rename(self, request: Request, principal: Principal) -> Response:
        """Rename a group."""
        read_query(request)
        group_id, tag = group_id_of(request), if_match(request)
        body = await read_patch(request, GroupPatch)
        # A patch without a field is rejected, and there is only this one.
        assert not isinstance(body.name, UnsetType)
        asked = GroupRename(group_id, body.name, expected_version(tag))
        with conditional(tag):
            group = await self._groups.rename(asked)
        return json_response(group_to_json(group), headers=tagged(_tag(group)))

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Delete a group permanently, and with it the shares and limits that name it."""
        read_query(request)
        refuse_condition(request)
        await self._groups.delete(group_id_of(request))
        return Response(status_code=204)

    async def list_members(self, request: Request, principal: Principal) -> Response:
        """List the users of a group, ordered by login."""
        page = page_request(read_query(request, "limit", "cursor"))
        group = await self._groups.read(principal.user, group_id_of(request))
        size = page.page_size or PAGE_LENGTH
        users = await self._identity_store.list_users(
            after_login=page.page_token, limit=size + 1, group_id=group.id
        )
        next_login = users[size - 1].login if len(users) > size else ""
        return json_response(page_to_json(map(managed_user_to_json, users[:size]), next_login))

    async def add_member(self, request: Request, principal: Principal) -> Response:
        """Add a user to a group; idempotent."""
        read_query(request)
        refuse_condition(request)
        group = await self._groups.add_member(group_id_of(request), user_id_of(request))
        return json_response(group_to_json(group))

    async def remove_member(self, request: Request, principal: Principal) -> Response:
        """Remove a user from a group; idempotent."""
        read_query(request)
        refuse_condition(request)
        await self._groups.remove_member(group_id_of(request), user_id_of(request))
        return Response(status_code=204)

    async def of_user(self, request: Request, principal: Principal) -> Response:
        """List the groups of a user."""
        read_query(request)
        user_id = user_id_of(request)
        user = await self._identity_store.find_user(user_id)
        if user is None or user.state is UserState.DELETED:
            raise UserNotFound(user_id)
        return await self._of(user_id)

    async def own(self, request: Request, principal: Principal) -> Response:
        """List the caller's groups."""
        read_query(request)
        return await self._of(principal.user.id)

    async def _of(self, user_id: str) -> Response:
        groups = await self._store.of_user(user_id)
        # The limit of groups per user is below the page size.
        return json_response(page_to_json(map(group_to_json, groups), ""))


def _tag(group: GroupRecord) -> str:
    return str(group.version)
