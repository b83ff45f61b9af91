"""ChatService: each method translates, asks one thing, and translates back."""

import uuid

import grpc

from chatd.domain.chat import ChatId, NewMessage, Owner, OwnerId, Role
from chatd.domain.commands import SendMessage
from chatd.domain.errors import InvalidRequest
from chatd.domain.parts import Part, Text
from chatd.engine.worker import Worker
from chatd.rpc.convert import chat_to_proto, content_from_proto, message_to_proto
from chatd.store.chats import PostgresChats
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1.chat_service_pb2_grpc import ChatServiceServicer
from parley.rpc import current_caller, detached

TITLE_WORDS_MAX = 6
TITLE_CHARACTERS_MAX = 80


class ChatServicer(ChatServiceServicer):
    """Serves chats out of the store and hands started turns to this process's worker."""

    def __init__(self, chats: PostgresChats, worker: Worker) -> None:
        self._chats = chats
        self._worker = worker

    async def CreateChat(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateChatRequest, context: grpc.aio.ServicerContext
    ) -> api.CreateChatResponse:
        """Create a chat with its first message and start its turn."""
        owner = caller_as_owner()
        owner_id = owner.id
        content = content_from_proto(list(request.content))
        chat_id = _new_chat_id(request, owner_id)
        is_new = await self._chats.create(
            chat_id,
            owner_id=owner_id,
            title=request.title.strip() or title_of(content),
            message=NewMessage(Role.USER, content, owner_id),
            claimed_by=self._worker.worker_id,
        )
        chat = await self._chats.get(chat_id, reader_id=owner_id)
        if is_new:
            self._worker.start(chat.state, owner, detached())
        first = (await self._chats.history(chat_id))[0]
        return api.CreateChatResponse(
            chat=chat_to_proto(chat), message=message_to_proto(chat_id, first)
        )

    async def GetChat(  # noqa: N802 (the name is the proto's)
        self, request: api.GetChatRequest, context: grpc.aio.ServicerContext
    ) -> api.GetChatResponse:
        """Read one chat."""
        chat = await self._chats.get(chat_id_of(request.chat_id), reader_id=caller_as_owner().id)
        return api.GetChatResponse(chat=chat_to_proto(chat))

    async def ListMessages(  # noqa: N802 (the name is the proto's)
        self, request: api.ListMessagesRequest, context: grpc.aio.ServicerContext
    ) -> api.ListMessagesResponse:
        """Read a page of the history."""
        chat_id = chat_id_of(request.chat_id)
        await self._chats.get(chat_id, reader_id=caller_as_owner().id)
        page = await self._chats.page(
            chat_id, before_id=request.before_id, after_id=request.after_id, limit=request.limit
        )
        return api.ListMessagesResponse(
            messages=[message_to_proto(chat_id, message) for message in page.messages],
            has_more=page.has_more,
        )

    async def SendMessage(  # noqa: N802 (the name is the proto's)
        self, request: api.SendMessageRequest, context: grpc.aio.ServicerContext
    ) -> api.SendMessageResponse:
        """Take one user message."""
        owner = caller_as_owner()
        owner_id = owner.id
        chat_id = chat_id_of(request.chat_id)
        await self._chats.get(chat_id, reader_id=owner_id)
        message = NewMessage(Role.USER, content_from_proto(list(request.content)), owner_id)
        command = SendMessage(message, self._worker.worker_id)
        started = await self._chats.apply(chat_id, command)
        self._worker.start(started, owner, detached())
        chat = await self._chats.get(chat_id, reader_id=owner_id)
        written = await self._chats.history(chat_id, started.snapshot_version - 1)
        return api.SendMessageResponse(
            message=message_to_proto(chat_id, written[0]), chat=chat_to_proto(chat)
        )


def caller_as_owner() -> Owner:
    """Return the user on whose behalf this call is made; the rules admit no other."""
    user = current_caller().user
    if user is None:
        raise InvalidRequest("authorization", "the token names no user")
    return Owner(OwnerId(user.id), user.role)


def chat_id_of(text: str) -> ChatId:
    """Return a chat id in its canonical form.

    Raises:
        InvalidRequest: the text is no UUID.
    """
    try:
        return ChatId(str(uuid.UUID(text)))
    except ValueError as error:
        raise InvalidRequest("chat_id", "is not a UUID") from error


def title_of(content: tuple[Part, ...]) -> str:
    """Return the first words of a message, until somebody finds a better title."""
    words = " ".join(part.text for part in content if isinstance(part, Text)).split()
    title = " ".join(words[:TITLE_WORDS_MAX])[:TITLE_CHARACTERS_MAX]
    return title if len(words) <= TITLE_WORDS_MAX else f"{title}…"


def _new_chat_id(request: api.CreateChatRequest, owner_id: OwnerId) -> ChatId:
    """Derive the id from user and request id, so that a repeated request finds its chat."""
    if not request.request_id:
        raise InvalidRequest("request_id", "is missing; choose one per request, such as a UUID")
    derived = uuid.uuid5(uuid.UUID(owner_id), request.request_id)
    if request.chat_id and chat_id_of(request.chat_id) != str(derived):
        raise InvalidRequest("chat_id", "is not the UUIDv5 of user and request id")
    return ChatId(str(derived))
