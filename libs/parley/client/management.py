"""Management of chats by an internal caller."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from parley.api.chat.v1 import action_service_pb2 as actions_api
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import revert_service_pb2 as reverts_api
from parley.client.action_conversion import action_of, action_page_of, answer_to_proto, plan_of
from parley.client.actions import Action, ActionAnswer, ActionPage, Plan
from parley.client.chats import Chat, ChatPage, Content, RequiredCall
from parley.client.conversion import chat_of, chat_page_of, content_to_proto
from parley.client.retries import Calls
from parley.client.reverts import Revert, RevertPreview, preview_of, revert_of


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a client tool."""

    tool_call_id: str
    output_json: str
    is_error: bool = False

    @classmethod
    def to(cls, call: RequiredCall, output: object, *, is_error: bool = False) -> "ToolAnswer":
        """Return the result of a call; the output is any JSON value."""
        return cls(call.tool_call_id, json.dumps(output), is_error)


@dataclass(frozen=True, slots=True)
class ChatFilter:
    """Which chats to list.

    Attributes:
        query: Search terms `key:value`, all of which must match.
        labels: Labels that must all match.
        archived: Whether to list archived chats instead of live ones.
        shared_with_me: Whether to list chats shared with the caller instead of its own.
    """

    query: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    archived: bool = False
    shared_with_me: bool = False


class Management:
    """Lists, actions, edits, reverts, queues, compaction, archive and deletion.

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

    async def list_actions(self, *, page_size: int = 0, page_token: str = "") -> ActionPage:
        """Read a page of what the caller's chats wait for, the longest first."""
        request = actions_api.ListActionsRequest(page_size=page_size, page_token=page_token)
        response = await self._calls.make(
            page_token or "list",
            lambda replica, deadline_s: replica.actions.ListActions(request, timeout=deadline_s),
        )
        return action_page_of(response)

    async def get_action(self, chat_id: str, action_id: str) -> Action:
        """Read one action, open or ended."""
        request = actions_api.GetActionRequest(chat_id=chat_id, action_id=action_id)
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.actions.GetAction(request, timeout=deadline_s),
        )
        return action_of(response.action)

    async def answer_action(
        self, chat_id: str, action_id: str, answer: ActionAnswer, *, request_id: str | None = None
    ) -> Action:
        """Answer a question, a plan or a request for permission; the last one resumes the turn."""
        request = actions_api.AnswerActionRequest(
            request_id=request_id or self._new_id(), chat_id=chat_id, action_id=action_id
        )
        request.MergeFrom(answer_to_proto(answer))
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.actions.AnswerAction(request, timeout=deadline_s),
        )
        return action_of(response.action)

    async def get_plan(self, chat_id: str) -> Plan:
        """Read the newest plan of a chat."""
        request = actions_api.GetPlanRequest(chat_id=chat_id)
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.actions.GetPlan(request, timeout=deadline_s),
        )
        return plan_of(response.plan)

    async def preview_revert(
        self, chat_id: str, message_id: int, *, restores_files: bool = False
    ) -> RevertPreview:
        """Tell what a revert to before a message of the user would do."""
        request = reverts_api.PreviewRevertRequest(
            chat_id=chat_id, message_id=message_id, restore_files=restores_files
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.reverts.PreviewRevert(request, timeout=deadline_s),
        )
        return preview_of(response)

    async def revert_chat(
        self,
        chat_id: str,
        message_id: int,
        *,
        restores_files: bool = False,
        request_id: str | None = None,
    ) -> Revert:
        """Delete a message of the user and all after it, and restore files if wanted.

        With files it runs on: `get_revert` tells when it is done.
        """
        request = reverts_api.RevertChatRequest(
            request_id=request_id or self._new_id(),
            chat_id=chat_id,
            message_id=message_id,
            restore_files=restores_files,
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.reverts.RevertChat(request, timeout=deadline_s),
        )
        return revert_of(response.revert)

    async def undo_revert(
        self, chat_id: str, revert_id: str, *, request_id: str | None = None
    ) -> Revert:
        """Bring back what a revert deleted, its files too; return the revert that does it."""
        request = reverts_api.UndoRevertRequest(
            request_id=request_id or self._new_id(), chat_id=chat_id, revert_id=revert_id
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.reverts.UndoRevert(request, timeout=deadline_s),
        )
        return revert_of(response.revert)

    async def get_revert(self, chat_id: str, revert_id: str) -> Revert:
        """Read a revert, and what it did to files once it is done."""
        request = reverts_api.GetRevertRequest(chat_id=chat_id, revert_id=revert_id)
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.reverts.GetRevert(request, timeout=deadline_s),
        )
        return revert_of(response.revert)

    async def list_reverts(self, chat_id: str) -> tuple[Revert, ...]:
        """Return the newest reverts of a chat, the newest first."""
        request = reverts_api.ListRevertsRequest(chat_id=chat_id, page_size=200)
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.reverts.ListReverts(request, timeout=deadline_s),
        )
        return tuple(map(revert_of, response.reverts))

    async def edit_message(
        self, chat_id: str, message_id: int, content: Content, *, request_id: str | None = None
    ) -> Chat:
        """Replace a message of the user and run the turn again from there."""
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
        """Remove a message from the queue."""
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
        """Move a queued message to the front, interrupting the running turn."""
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
        """Submit the results of all calls of client tools at once."""
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
        """Archive or unarchive a chat and its children."""
        request = api.SetArchivedRequest(
            request_id=self._new_id(), chat_id=chat_id, archived=archived
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.SetArchived(request, timeout=deadline_s),
        )
        return chat_of(response.chat)

    async def delete_chat(self, chat_id: str) -> None:
        """Delete a chat and its children permanently."""
        request = api.DeleteChatRequest(request_id=self._new_id(), chat_id=chat_id)
        await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.DeleteChat(request, timeout=deadline_s),
        )
