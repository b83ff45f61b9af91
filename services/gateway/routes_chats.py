"""Chats over HTTP: create, read, send."""

from collections.abc import Callable
from uuid import UUID, uuid5

from starlette.requests import Request
from starlette.responses import Response

from gateway.authentication import SignedIn
from gateway.bodies import INTEGER_MAX, idempotency_key, read_json, read_query, whole_number
from gateway.chatd import Chatd
from gateway.convert import (
    BUSY_BEHAVIOR,
    chat_to_json,
    content_to_proto,
    message_to_json,
    queued_to_json,
)
from gateway.errors import HttpRefusal
from gateway.inputs import NewChat, NewMessage
from gateway.responses import json_response
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.identity import UserId

MESSAGES_MAX = 200


class ChatRoutes:
    """The routes under /chats."""

    def __init__(
        self,
        chatd: Chatd,
        *,
        new_id: Callable[[], str],
    ) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def create(self, request: Request, visitor: SignedIn) -> Response:
        """Create a chat with its first message."""
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewChat)
        chat_id = chat_id_for(visitor.user.id, key)
        asked = api.CreateChatRequest(
            request_id=key,
            chat_id=chat_id,
            content=content_to_proto(body.content),
            title=body.title,
            model_id=body.model_id,
        )
        answer, _ = await self._chatd.ask(
            visitor.user, chat_id, lambda stubs: stubs.chats.CreateChat(asked)
        )
        headers = {"location": f"/api/v1/chats/{answer.chat.id}"}
        return json_response(chat_to_json(answer.chat), status=201, headers=headers)

    async def read(self, request: Request, visitor: SignedIn) -> Response:
        """Read one chat."""
        read_query(request)
        chat_id = chat_id_of(request)
        asked = api.GetChatRequest(chat_id=chat_id)
        answer, _ = await self._chatd.ask(
            visitor.user, chat_id, lambda stubs: stubs.chats.GetChat(asked)
        )
        return json_response(chat_to_json(answer.chat, answer.children))

    async def messages(self, request: Request, visitor: SignedIn) -> Response:
        """Read a page of the history."""
        chat_id = chat_id_of(request)
        query = read_query(request, "before_id", "after_id", "limit")
        asked = api.ListMessagesRequest(
            chat_id=chat_id,
            before_id=whole_number(query, "before_id", least=0, most=INTEGER_MAX) or 0,
            after_id=whole_number(query, "after_id", least=0, most=INTEGER_MAX) or 0,
            limit=whole_number(query, "limit", least=1, most=MESSAGES_MAX) or 0,
        )
        answer, _ = await self._chatd.ask(
            visitor.user, chat_id, lambda stubs: stubs.chats.ListMessages(asked)
        )
        return json_response(
            {
                "messages": [message_to_json(message) for message in answer.messages],
                "has_more": answer.has_more,
                "queued_messages": [queued_to_json(queued) for queued in answer.queued_messages],
            }
        )

    async def send(self, request: Request, visitor: SignedIn) -> Response:
        """Send a message."""
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewMessage)
        asked = api.SendMessageRequest(
            request_id=key,
            chat_id=chat_id,
            content=content_to_proto(body.content),
            busy_behavior=BUSY_BEHAVIOR[body.busy_behavior],
            model_id=body.model_id,
        )
        answer, _ = await self._chatd.ask(
            visitor.user, chat_id, lambda stubs: stubs.chats.SendMessage(asked)
        )
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


def chat_id_for(user_id: UserId, key: str) -> str:
    """Return the id of the chat that a user creates with an idempotency key.

    Chats that the same user creates with the same key are one chat, on every gateway.
    """
    return str(uuid5(UUID(user_id), key))


def chat_id_of(request: Request) -> str:
    """Return the chat that the path names, in the one spelling that all processes hash alike.

    Raises:
        HttpRefusal: It is no id, so there is no such chat (404).
    """
    try:
        return str(UUID(request.path_params["chat_id"]))
    except ValueError:
        raise HttpRefusal(
            404, "CHAT_NOT_FOUND", "There is no such chat, or you may not see it."
        ) from None
