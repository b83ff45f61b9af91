"""HTTP routes of service tokens."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.users import token_to_json
from gateway.api.inputs.chats import NewServiceToken
from gateway.http.authentication import Principal
from gateway.http.request_body import (
    flag,
    idempotency_key,
    int_parameter,
    invalid_parameter,
    read_json,
    read_query,
)
from gateway.http.responses import json_response
from gateway.identity.engine.service_tokens import PAGE_SIZE_MAX, NewToken, ServiceTokens, is_uuid


class TokenRoutes:
    """The routes /service-tokens."""

    def __init__(self, tokens: ServiceTokens, *, new_id: Callable[[], str]) -> None:
        self._tokens = tokens
        self._new_id = new_id

    async def issue(self, request: Request, principal: Principal) -> Response:
        """Issue a service token; only this response contains its text."""
        read_query(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewServiceToken)
        asked = NewToken(
            request_id=key,
            name=body.name,
            scopes=body.scopes,
            user_id=body.user_id,
            lifetime_s=body.lifetime_s,
        )
        issued = await self._tokens.issue(principal.user, asked)
        document = token_to_json(issued.record) | {"token": issued.text}
        headers = {"location": f"/api/v1/service-tokens/{issued.record.id}"}
        return json_response(document, status=201, headers=headers)

    async def list(self, request: Request, principal: Principal) -> Response:
        """List service tokens, newest first."""
        query = read_query(request, "limit", "cursor", "user_id", "include_ended")
        cursor = query.get("cursor", "")
        if cursor and not is_uuid(cursor):
            raise invalid_parameter("cursor", "Give next_cursor of the page before.")
        page = await self._tokens.page(
            page_size=int_parameter(query, "limit", least=1, most=PAGE_SIZE_MAX) or 0,
            page_token=cursor,
            user_id=query.get("user_id", ""),
            include_ended=flag(query, "include_ended"),
        )
        items = [token_to_json(record) for record in page.records]
        return json_response({"items": items, "next_cursor": page.next_page_token or None})

    async def revoke(self, request: Request, principal: Principal) -> Response:
        """Revoke a service token permanently; idempotent."""
        read_query(request)
        record = await self._tokens.revoke(request.path_params["token_id"])
        return json_response(token_to_json(record))
