"""HTTP routes of messages: list, send, edit."""

from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.chat_requests import BUSY_BEHAVIOR, content_to_proto, effort_to_proto
from gateway.api.convert.chats import message_to_json, queued_to_json
from gateway.api.inputs.chats import INTEGER_MAX, MessageEdit, NewMessage
from gateway.api.path_parameters import chat_id_of, message_id_of
from gateway.http.authentication import Principal
from gateway.http.request_body import idempotency_key, int_parameter, read_json, read_query
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import chat_service_pb2 as api

MESSAGES_MAX = 200


class MessageRoutes:
    """The routes under /chats/{chat_id}/messages."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def list(self, request: Request, principal: Principal) -> Response:
        """Return a page of the history; the first one contains the queue, too."""
        chat_id = chat_id_of(request)
        query = read_query(
            request, "before_id", "after_id", "limit", checks=(_before_id, _after_id, _limit)
        )
        asked = api.ListMessagesRequest(
            chat_id=chat_id,
            before_id=_before_id(query),
            after_id=_after_id(query),
            limit=_limit(query),
        )
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.ListMessages(asked)
        )
        return json_response(
            {
                "messages": [message_to_json(message) for message in answer.messages],
                "has_more": answer.has_more,
                "queued_messages": [queued_to_json(queued) for queued in answer.queued_messages],
            }
        )

    async def send(self, request: Request, principal: Principal) -> Response:
        """Send a message."""
        read_query(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewMessage)
        asked = api.SendMessageRequest(
            request_id=key,
            chat_id=chat_id,
            content=content_to_proto(body.content),
            busy_behavior=BUSY_BEHAVIOR[body.busy_behavior],
            brief=True,
            model_id=body.model_id,
            reasoning_effort=effort_to_proto(body.reasoning_effort),
        )
        answer, _ = await self._chatd.ask(principal.user, chat_id, lambda stubs: stubs.send(asked))
        is_queued = answer.HasField("queued_message")
        has_message = answer.HasField("message")
        document = {
            "message": message_to_json(answer.message) if has_message else None,
            "queued_message": queued_to_json(answer.queued_message) if is_queued else None,
            "queued": is_queued,
            "snapshot_version": answer.chat.versions.snapshot,
        }
        headers = {"idempotency-replayed": "true"} if answer.replayed else {}
        return json_response(document, status=202, headers=headers)

    async def edit(self, request: Request, principal: Principal) -> Response:
        """Replace a user message and run the turn again from there."""
        read_query(request)
        chat_id, message_id = chat_id_of(request), message_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, MessageEdit)
        asked = api.EditMessageRequest(
            request_id=key,
            chat_id=chat_id,
            message_id=message_id,
            content=content_to_proto(body.content),
            model_id=body.model_id,
            reasoning_effort=effort_to_proto(body.reasoning_effort),
        )
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.EditMessage(asked)
        )
        document = {
            "message": message_to_json(answer.message),
            "deleted_message_ids": [*answer.deleted_message_ids],
            "dropped_queued_messages": [*map(queued_to_json, answer.dropped_queued_messages)],
            "snapshot_version": answer.chat.versions.snapshot,
        }
        return json_response(document, status=202)


def _before_id(query: Mapping[str, str]) -> int:
    return int_parameter(query, "before_id", least=0, most=INTEGER_MAX) or 0


def _after_id(query: Mapping[str, str]) -> int:
    return int_parameter(query, "after_id", least=0, most=INTEGER_MAX) or 0


def _limit(query: Mapping[str, str]) -> int:
    return int_parameter(query, "limit", least=1, most=MESSAGES_MAX) or 0
