"""HTTP routes of the shares of a chat; shares are read-only."""

from collections.abc import Callable, Iterable

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.chat_requests import share_to_proto
from gateway.api.convert.chats import share_to_json
from gateway.api.convert.parts import Json
from gateway.api.inputs.chats import NewShares
from gateway.api.path_parameters import chat_id_of
from gateway.http.authentication import Principal
from gateway.http.preconditions import refuse_condition
from gateway.http.request_body import idempotency_key, read_json, read_query
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import chat_service_pb2 as api


class ShareRoutes:
    """The routes /chats/{chat_id}/shares."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def list(self, request: Request, principal: Principal) -> Response:
        """List the shares of a chat."""
        read_query(request)
        chat_id = chat_id_of(request)
        asked = api.GetSharesRequest(chat_id=chat_id)
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.GetShares(asked)
        )
        return json_response(_shown(answer.shares))

    async def replace(self, request: Request, principal: Principal) -> Response:
        """Replace the shares of a chat."""
        read_query(request)
        refuse_condition(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewShares)
        asked = api.SetSharesRequest(
            request_id=key, chat_id=chat_id, shares=map(share_to_proto, body.shares)
        )
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.SetShares(asked)
        )
        return json_response(_shown(answer.shares))


def _shown(shares: Iterable[api.Share]) -> Json:
    return {"shares": [share_to_json(share) for share in shares]}
