"""HTTP routes of a chat's queue; the first page of messages contains it."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.chats import chat_to_json
from gateway.api.inputs.chats import Nothing
from gateway.api.path_parameters import chat_id_of, queued_message_id_of
from gateway.http.authentication import Principal
from gateway.http.request_body import idempotency_key, read_optional_json, read_query
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import chat_service_pb2 as api


class QueueRoutes:
    """The routes under /chats/{chat_id}/queue."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Delete a queued message."""
        read_query(request)
        chat_id, queued_message_id = chat_id_of(request), queued_message_id_of(request)
        key = idempotency_key(request) or self._new_id()
        asked = api.DeleteQueuedMessageRequest(
            request_id=key, chat_id=chat_id, queued_message_id=queued_message_id
        )
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.DeleteQueuedMessage(asked)
        )
        return json_response(chat_to_json(answer.chat))

    async def promote(self, request: Request, principal: Principal) -> Response:
        """Send a queued message now, and interrupt the running turn."""
        read_query(request)
        chat_id, queued_message_id = chat_id_of(request), queued_message_id_of(request)
        key = idempotency_key(request) or self._new_id()
        await read_optional_json(request, Nothing)
        asked = api.PromoteQueuedMessageRequest(
            request_id=key, chat_id=chat_id, queued_message_id=queued_message_id
        )
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.PromoteQueuedMessage(asked)
        )
        return json_response(chat_to_json(answer.chat), status=202)
