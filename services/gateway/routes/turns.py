"""HTTP routes of a chat's turn: interrupt, compact, submit tool results, reconcile."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.chat_requests import tool_result_to_proto
from gateway.api.convert.chats import chat_to_json
from gateway.api.inputs.chats import Nothing, ToolResults, TurnToInterrupt
from gateway.api.path_parameters import chat_id_of
from gateway.http.authentication import Principal
from gateway.http.request_body import idempotency_key, read_json, read_optional_json, read_query
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import chat_service_pb2 as api


class TurnRoutes:
    """The routes that control a chat's turn."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def interrupt(self, request: Request, principal: Principal) -> Response:
        """Stop the turn and keep its output; it is no error if the turn has ended."""
        read_query(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_optional_json(request, TurnToInterrupt)
        asked = api.InterruptRequest(
            request_id=key, chat_id=chat_id, turn_message_id=body.turn_message_id
        )
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.Interrupt(asked)
        )
        return json_response(chat_to_json(answer.chat), status=202)

    async def compact(self, request: Request, principal: Principal) -> Response:
        """Summarise the history now."""
        read_query(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        await read_optional_json(request, Nothing)
        asked = api.RequestCompactionRequest(request_id=key, chat_id=chat_id)
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.RequestCompaction(asked)
        )
        return json_response(chat_to_json(answer.chat), status=202)

    async def submit_tool_results(self, request: Request, principal: Principal) -> Response:
        """Submit the results of all calls that the client executes."""
        read_query(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, ToolResults)
        asked = api.SubmitToolResultsRequest(
            request_id=key, chat_id=chat_id, results=map(tool_result_to_proto, body.results)
        )
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.SubmitToolResults(asked)
        )
        return json_response(chat_to_json(answer.chat), status=202)

    async def reconcile(self, request: Request, principal: Principal) -> Response:
        """Repair a chat whose stored state is inconsistent."""
        read_query(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        await read_optional_json(request, Nothing)
        asked = api.ReconcileChatRequest(request_id=key, chat_id=chat_id)
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.ReconcileChat(asked)
        )
        return json_response(chat_to_json(answer.chat))
