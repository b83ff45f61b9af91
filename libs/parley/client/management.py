"""What an internal caller can do with chats beside talking in them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from parley.api.chat.v1 import chat_service_pb2 as api
from parley.client.chats import Chat, ChatPage, Content, RequiredCall
from parley.client.conversion import chat_of, chat_page_of, content_to_proto
from parley.client.retries import Calls


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a client's own tool came to."""

    tool_call_id: str
    output_json: str
    is_error: bool = False

    @classmethod
    def to(cls, call: RequiredCall, output: object, *, is_error: bool = False) -> "ToolAnswer":
        """Return the answer to a call; the output is anything that JSON can say."""
        return cls(call.tool_call_id, json.dumps(output), is_error)


@dataclass(frozen=True, slots=True)
class ChatFilter:
    """Which chats to list.

    Attributes:
        query: Search terms `key:value`, all of which must hold.
        labels: Labels that must all match.
        archived: Whether to list archived chats instead of live ones.
        shared_with_me: Whether to list what others share with the caller instead of their own.
    """

    query: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    archived: bool = False
    shared_with_me: bool = False


class Management:
    """Lists, edits, queues, compaction, archive and deletion.

    Every method raises `CallFailed`; see the tree in `errors`.
    """

    def __init__(self, calls: Calls, new_id: Callable[[], str]) -> None:
        self._calls = calls
        self._new_id = new_id

    async def list_chats(
        self, wanted: ChatFilter | None = None, *, page_size: int = 0, page_token: str = ""
    ) -> ChatPage:
        """Read a page of chats: pinned first, then newest change first."""
        wanted = wanted or ChatFilter()
        request = api.ListChatsRequest(
            page_size=page_size,
            page_token=page_token,
            query=wanted.query,
            labels=wanted.labels,
            archived=wanted.archived,
            shared_with_me=wanted.shared_with_me,
        )
        response = await self._calls.make(
            page_token or "list",
            lambda replica, deadline_s: replica.chats.ListChats(request, timeout=deadline_s),
        )
        return chat_page_of(response)

    async def edit_message(
        self, chat_id: str, message_id: int, content: Content, *, request_id: str | None = None
    ) -> Chat:
        """Replace a message of the user and run anew from there."""
        request = api.EditMessageRequest(
            request_id=request_id or self._new_id(),
            chat_id=chat_id,
            message_id=message_id,
            content=content_to_proto(content),
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.EditMessage(request, timeout=deadline_s),
        )
        return chat_of(response.chat)

    async def drop_queued(self, chat_id: str, queued_message_id: str) -> Chat:
        """Drop a message that waits."""
        request = api.DeleteQueuedMessageRequest(
            request_id=self._new_id(), chat_id=chat_id, queued_message_id=queued_message_id
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.DeleteQueuedMessage(
                request, timeout=deadline_s
            ),
        )
        return chat_of(response.chat)

    async def promote_queued(self, chat_id: str, queued_message_id: str) -> Chat:
        """Let a message that waits go next, interrupting what runs."""
        request = api.PromoteQueuedMessageRequest(
            request_id=self._new_id(), chat_id=chat_id, queued_message_id=queued_message_id
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.PromoteQueuedMessage(
                request, timeout=deadline_s
            ),
        )
        return chat_of(response.chat)

    async def compact(self, chat_id: str) -> Chat:
        """Summarise the history now."""
        request = api.RequestCompactionRequest(request_id=self._new_id(), chat_id=chat_id)
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.RequestCompaction(
                request, timeout=deadline_s
            ),
        )
        return chat_of(response.chat)

    async def submit_tool_results(self, chat_id: str, *answers: ToolAnswer) -> Chat:
        """Answer the calls of the client's own tools, all of them at once."""
        request = api.SubmitToolResultsRequest(
            request_id=self._new_id(),
            chat_id=chat_id,
            results=[
                api.ClientToolResult(
                    tool_call_id=answer.tool_call_id,
                    output_json=answer.output_json,
                    is_error=answer.is_error,
                )
                for answer in answers
            ],
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.SubmitToolResults(
                request, timeout=deadline_s
            ),
        )
        return chat_of(response.chat)

    async def set_archived(self, chat_id: str, archived: bool) -> Chat:
        """Put a chat and its children away, or take them back."""
        request = api.SetArchivedRequest(
            request_id=self._new_id(), chat_id=chat_id, archived=archived
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.SetArchived(request, timeout=deadline_s),
        )
        return chat_of(response.chat)

    async def delete_chat(self, chat_id: str) -> None:
        """Remove a chat and its children for good."""
        request = api.DeleteChatRequest(request_id=self._new_id(), chat_id=chat_id)
        await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.DeleteChat(request, timeout=deadline_s),
        )
