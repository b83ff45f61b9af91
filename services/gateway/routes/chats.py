"""HTTP routes of chats: create, list, read, update, archive, delete."""

from collections.abc import Callable
from uuid import UUID, uuid5

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.chat_requests import chat_patch_to_proto, new_chat_to_proto
from gateway.api.convert.chats import chat_to_json
from gateway.api.inputs.chats import ChatPatch, Labels, NewChat, Nothing, ReadMark
from gateway.api.paging import page_request, page_to_json
from gateway.api.path_parameters import chat_id_of
from gateway.http.authentication import Principal
from gateway.http.preconditions import conditional, hashed_response, if_match, tagged, version_in
from gateway.http.request_body import (
    flag,
    idempotency_key,
    invalid_parameter,
    read_json,
    read_optional_json,
    read_patch,
    read_query,
)
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.identity import UserId

QUERY_CHARACTERS_MAX = 4096


class ChatRoutes:
    """The routes /chats and /chats/{chat_id}."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def create(self, request: Request, principal: Principal) -> Response:
        """Create a chat with its first message."""
        read_query(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewChat)
        chat_id = chat_id_for(principal.user.id, key)
        asked = new_chat_to_proto(body, request_id=key, chat_id=chat_id)
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.CreateChat(asked)
        )
        headers = {"location": f"/api/v1/chats/{answer.chat.id}", **tagged(answer.chat.etag)}
        return json_response(chat_to_json(answer.chat), status=201, headers=headers)

    async def list(self, request: Request, principal: Principal) -> Response:
        """List chats: pinned first, then newest change first."""
        query = read_query(
            request,
            "q",
            "archived",
            "shared_with_me",
            "limit",
            "cursor",
            repeatable=("label",),
            checks=(
                page_request,
                lambda query: _search(query.get("q", "")),
                lambda _: _labels(request.query_params.getlist("label")),
                lambda query: flag(query, "archived"),
                lambda query: flag(query, "shared_with_me"),
            ),
        )
        page = page_request(query)
        asked = api.ListChatsRequest(
            page_size=page.page_size,
            page_token=page.page_token,
            query=_search(query.get("q", "")),
            labels=_labels(request.query_params.getlist("label")),
            archived=flag(query, "archived"),
            shared_with_me=flag(query, "shared_with_me"),
        )
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.chats.ListChats(asked)
        )
        items = map(chat_to_json, answer.chats)
        return hashed_response(request, page_to_json(items, answer.next_page_token))

    async def read(self, request: Request, principal: Principal) -> Response:
        """Read one chat."""
        read_query(request)
        chat_id = chat_id_of(request)
        asked = api.GetChatRequest(chat_id=chat_id)
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.GetChat(asked)
        )
        document = chat_to_json(answer.chat, answer.children)
        return hashed_response(request, document, version=answer.chat.etag)

    async def update(self, request: Request, principal: Principal) -> Response:
        """Change title, labels, pin, mode, model, effort, workspace or MCP servers."""
        read_query(request)
        chat_id, tag = chat_id_of(request), version_in(if_match(request))
        key = idempotency_key(request) or self._new_id()
        body = await read_patch(request, ChatPatch)
        asked = chat_patch_to_proto(body, request_id=key, chat_id=chat_id, etag=tag)
        with conditional(tag):
            answer, _ = await self._chatd.ask(
                principal.user, chat_id, lambda stubs: stubs.chats.UpdateChat(asked)
            )
        return json_response(chat_to_json(answer.chat), headers=tagged(answer.chat.etag))

    async def archive(self, request: Request, principal: Principal) -> Response:
        """Archive a chat and its children."""
        return await self._set_archived(request, principal, archived=True)

    async def unarchive(self, request: Request, principal: Principal) -> Response:
        """Unarchive a chat and its children."""
        return await self._set_archived(request, principal, archived=False)

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Delete a chat and its children permanently."""
        read_query(request)
        chat_id, tag = chat_id_of(request), version_in(if_match(request))
        key = idempotency_key(request) or self._new_id()
        asked = api.DeleteChatRequest(request_id=key, chat_id=chat_id, etag=tag)
        with conditional(tag):
            await self._chatd.ask(
                principal.user, chat_id, lambda stubs: stubs.chats.DeleteChat(asked)
            )
        return Response(status_code=204)

    async def mark_read(self, request: Request, principal: Principal) -> Response:
        """Store how far the owner has read."""
        read_query(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, ReadMark)
        asked = api.MarkReadRequest(
            request_id=key, chat_id=chat_id, last_message_id=body.last_message_id
        )
        answer, _ = await self._chatd.ask(
            principal.user, chat_id, lambda stubs: stubs.chats.MarkRead(asked)
        )
        return json_response({"last_message_id": answer.last_message_id})

    async def _set_archived(
        self, request: Request, principal: Principal, *, archived: bool
    ) -> Response:
        read_query(request)
        chat_id, tag = chat_id_of(request), version_in(if_match(request))
        key = idempotency_key(request) or self._new_id()
        await read_optional_json(request, Nothing)
        asked = api.SetArchivedRequest(request_id=key, chat_id=chat_id, archived=archived, etag=tag)
        with conditional(tag):
            answer, _ = await self._chatd.ask(
                principal.user, chat_id, lambda stubs: stubs.chats.SetArchived(asked)
            )
        return json_response(chat_to_json(answer.chat), headers=tagged(answer.chat.etag))


def chat_id_for(user_id: UserId, key: str) -> str:
    """Return the id of the chat that a user creates with an idempotency key.

    The same user and key always result in the same chat, on every gateway.
    """
    return str(uuid5(UUID(user_id), key))


def _search(text: str) -> str:
    if len(text) > QUERY_CHARACTERS_MAX:
        raise invalid_parameter("q", f"Give at most {QUERY_CHARACTERS_MAX} characters.")
    return text


def _labels(texts: list[str]) -> dict[str, str]:
    """Return the label filters of a list, each written as key:value."""
    pairs = [text.partition(":") for text in texts]
    labels = {key: value for key, _, value in pairs}
    if len(labels) < len(pairs):
        raise invalid_parameter("label", "Give each key once.")
    try:
        return msgspec.convert(labels, Labels)
    except msgspec.ValidationError:
        raise invalid_parameter(
            "label",
            "Give key:value; a key has 1 to 64 letters, digits and ._/-, a value 1 to 256 "
            "characters, and there are at most 50.",
        ) from None
