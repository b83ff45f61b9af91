"""Methods that only read."""

from collections.abc import AsyncIterator, Sequence

from chatd.chats.domain.errors import BreakGlassNeeded, MessageNotFound
from chatd.chats.domain.views import ChatView
from chatd.chats.rpc.bounding import EXPORTED_BYTES_MAX, PAGE_BYTES_MAX
from chatd.chats.rpc.convert import chat_to_proto, message_to_proto, queued_to_proto
from chatd.chats.rpc.methods import ChatMethods, Context
from chatd.chats.rpc.search import searched
from chatd.chats.store.listing import Filter, Source
from chatd.chats.store.reading import Bounds, Page
from chatd.content.domain.todos import TodoStatus
from chatd.primitives.domain.errors import ChatNotFound, InvalidRequest
from chatd.primitives.domain.ids import ChatId, MessageId, OwnerId
from chatd.primitives.domain.requests import ADMINISTRATORS, Reader
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_reader
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import message_pb2
from parley.contract.rules import JSON_INTEGER_MAX

PAGE_LENGTH = 50
PROMPTS = 100
TODO_STATUSES = {
    TodoStatus.PENDING: api.TODO_STATUS_PENDING,
    TodoStatus.IN_PROGRESS: api.TODO_STATUS_IN_PROGRESS,
    TodoStatus.DONE: api.TODO_STATUS_DONE,
    TodoStatus.CANCELLED: api.TODO_STATUS_CANCELLED,
}


class ReadMethods(ChatMethods):
    """Reads for callers with permission."""

    async def GetChat(self, request: api.GetChatRequest, context: Context) -> api.GetChatResponse:
        """Return one chat with its children."""
        chat_id = fields.chat_id_of(request.chat_id)
        reader = await caller_as_reader(self._groups)
        chat = await self._read(chat_id, reader)
        answer = api.GetChatResponse(chat=chat_to_proto(chat))
        if chat.parent_chat_id is None:
            after = fields.optional_uuid(request.children_after, "children_after")
            children, has_more = await self._stores.reading.children(chat_id, reader, after)
            answer.chat.children.extend(chat_to_proto(child) for child in children)
            answer.chat.has_more_children = has_more
        return answer

    async def ListChats(
        self, request: api.ListChatsRequest, context: Context
    ) -> api.ListChatsResponse:
        """Return a page of chats."""
        reader = await caller_as_reader(self._groups)
        among = Filter(
            source=await self._source(request, reader),
            owner_id=request.owner_id.lower(),
            archived=request.archived,
            labels=dict(request.labels),
            workspace_id=request.workspace_id,
        )
        wanted = searched(request.query, among)
        page = await self._stores.listing.page(
            reader, wanted, length=request.page_size or PAGE_LENGTH, token=request.page_token
        )
        return api.ListChatsResponse(
            chats=[chat_to_proto(chat) for chat in page.chats], next_page_token=page.next_token
        )

    async def ListMessages(
        self, request: api.ListMessagesRequest, context: Context
    ) -> api.ListMessagesResponse:
        """Return a page of a history."""
        chat_id = fields.chat_id_of(request.chat_id)
        before_id, after_id = request.before_id, request.after_id
        if before_id and after_id >= before_id:
            raise InvalidRequest("after_id", "is not below before_id")
        if request.around_id and (before_id or after_id):
            raise InvalidRequest("around_id", "is given without before_id and after_id")
        bounds = Bounds(before_id, after_id, request.limit or PAGE_LENGTH, request.around_id)
        page = await self._page(chat_id, bounds)
        messages = [message_to_proto(chat_id, message) for message in page.messages]
        fitting = _fitting(messages, request.around_id)
        is_older_left = bool(messages) and fitting[-1].id != messages[-1].id
        is_newer_left = bool(messages) and fitting[0].id != messages[0].id
        return api.ListMessagesResponse(
            messages=fitting,
            has_more=page.has_more or is_older_left,
            queued_messages=[queued_to_proto(queued) for queued in page.queue],
            cursor="" if page.versions is None else self._cursor_after(chat_id, page.versions),
            has_newer=page.has_newer or is_newer_left,
        )

    async def ListPrompts(
        self, request: api.ListPromptsRequest, context: Context
    ) -> api.ListPromptsResponse:
        """Return what users wrote, newest first."""
        prompts = await self._stores.reading.prompts(
            fields.chat_id_of(request.chat_id),
            await caller_as_reader(self._groups),
            request.limit or PROMPTS,
        )
        return api.ListPromptsResponse(
            prompts=[api.Prompt(id=id_, text=text) for id_, text in prompts]
        )

    async def ListTodos(
        self, request: api.ListTodosRequest, context: Context
    ) -> api.ListTodosResponse:
        """Return the to-do list of a chat."""
        reader = await caller_as_reader(self._groups)
        todos = await self._stores.reading.todos(fields.chat_id_of(request.chat_id), reader)
        return api.ListTodosResponse(
            items=[
                api.Todo(id=todo.id, text=todo.text, status=TODO_STATUSES[todo.status])
                for todo in todos
            ]
        )

    async def GetMessage(
        self, request: api.GetMessageRequest, context: Context
    ) -> api.GetMessageResponse:
        """Return one message of a history."""
        chat_id = fields.chat_id_of(request.chat_id)
        if not 1 <= request.message_id <= JSON_INTEGER_MAX:
            raise InvalidRequest("message_id", f"is not between 1 and {JSON_INTEGER_MAX}")
        message_id = MessageId(request.message_id)
        page = await self._page(
            chat_id, Bounds(before_id=message_id + 1, after_id=message_id - 1, limit=1)
        )
        if not page.messages:
            raise MessageNotFound(message_id)
        return api.GetMessageResponse(message=message_to_proto(chat_id, page.messages[0]))

    async def ExportChat(
        self, request: api.ExportChatRequest, context: Context
    ) -> AsyncIterator[api.ExportChatResponse]:
        """Stream a whole chat: itself, its messages in order, and their count."""
        chat_id = fields.chat_id_of(request.chat_id)
        reader: Reader = await caller_as_reader(self._groups)
        chat = await self._read(chat_id, reader)
        yield api.ExportChatResponse(chat=chat_to_proto(chat))
        count = 0
        async for message in self._stores.reading.messages(chat_id, reader):
            exported = message_to_proto(chat_id, message, EXPORTED_BYTES_MAX)
            yield api.ExportChatResponse(message=exported)
            count += 1
        yield api.ExportChatResponse(complete=api.ExportComplete(message_count=count))

    async def _read(self, chat_id: ChatId, reader: Reader) -> ChatView:
        """Return a chat; that an administrator reads one of another is recorded before."""
        chat = await self._stores.reading.get(chat_id, reader)
        if chat.owner.id != reader.id and ADMINISTRATORS in reader.group_ids:
            await self._stores.break_glass.record_read(chat_id, reader)
        return chat

    async def _page(self, chat_id: ChatId, bounds: Bounds) -> Page:
        reader = await caller_as_reader(self._groups)
        page = await self._stores.reading.page(chat_id, reader, bounds)
        if ADMINISTRATORS in reader.group_ids and not await self._is_own(chat_id, reader):
            await self._stores.break_glass.record_read(chat_id, reader)
        return page

    async def _is_own(self, chat_id: ChatId, reader: Reader) -> bool:
        try:
            await self._stores.ownership.require(chat_id, reader.id)
        except ChatNotFound:
            return False
        return True

    async def _source(self, request: api.ListChatsRequest, reader: Reader) -> Source:
        """Return whose chats are listed.

        Raises:
            InvalidRequest: Two answers are asked for at once.
            BreakGlassNeeded: The caller has no open access to them.
        """
        if not request.owner_id:
            return Source.SHARED if request.shared_with_me else Source.OWN
        if request.shared_with_me:
            raise InvalidRequest("owner_id", "cannot be given with shared_with_me")
        owner_id = OwnerId(request.owner_id.lower())
        if owner_id == reader.id:
            return Source.OWN
        is_administrator = ADMINISTRATORS in reader.group_ids
        if not is_administrator or not await self._stores.break_glass.is_open(reader.id, owner_id):
            raise BreakGlassNeeded(owner_id)
        return Source.OPENED


def _fitting(messages: Sequence[message_pb2.Message], around_id: int) -> list[message_pb2.Message]:
    """Return the messages of a page that fit into one response, but at least one.

    The first ones are kept, or those nearest to an id.
    """
    places = range(len(messages))
    centre = next((place for place in places if messages[place].id <= around_id), 0)
    fitting: list[int] = []
    left_bytes = PAGE_BYTES_MAX
    for place in sorted(places, key=lambda place: abs(place - centre)):
        left_bytes -= messages[place].ByteSize()
        if left_bytes < 0 and fitting:
            break
        fitting.append(place)
    return [messages[place] for place in sorted(fitting)]
