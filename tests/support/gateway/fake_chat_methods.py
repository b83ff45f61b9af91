"""The methods of ChatService over the chats of a `FakeChatd`."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.chat.v1.chat_service_pb2_grpc import ChatServiceServicer
from parley.rpc import Problem, Refusal, current_caller
from support.gateway.fake_chatd import EDIT_REVERT_ID, FakeChatd

VERSION_CONFLICT = Problem(
    grpc.StatusCode.ABORTED, "VERSION_CONFLICT", "Somebody changed it meanwhile."
)


class FakeChatMethods(ChatServiceServicer):
    """The chat methods, over the chats of the test."""

    def __init__(self, fake: FakeChatd) -> None:
        self._fake = fake

    async def CreateChat(self, request: Any, context: Any) -> chats_api.CreateChatResponse:  # noqa: N802
        self._fake.take(request)
        user = current_caller().user
        assert user is not None
        chat = chat_pb2.Chat(
            id=request.chat_id,
            etag="1",
            owner_id=user.id,
            title=request.title or "A chat",
            status=chat_pb2.CHAT_STATUS_RUNNING,
            root_chat_id=request.chat_id,
            versions=chat_pb2.Versions(snapshot=1, history=1, generation_attempt=1),
        )
        self._fake.chats.setdefault(request.chat_id, chat)
        message = self._message(request)
        self._fake.messages.setdefault(request.chat_id, [message])
        return chats_api.CreateChatResponse(chat=chat, message=message)

    async def GetChat(self, request: Any, context: Any) -> chats_api.GetChatResponse:  # noqa: N802
        self._fake.take(request)
        return chats_api.GetChatResponse(chat=self._fake.chat_of(request.chat_id))

    async def ListMessages(self, request: Any, context: Any) -> chats_api.ListMessagesResponse:  # noqa: N802
        self._fake.take(request)
        self._fake.chat_of(request.chat_id)
        return chats_api.ListMessagesResponse(
            messages=self._fake.messages[request.chat_id],
            queued_messages=self._fake.queues.get(request.chat_id, []),
        )

    async def GetMessage(self, request: Any, context: Any) -> chats_api.GetMessageResponse:  # noqa: N802
        self._fake.take(request)
        known = self._fake.messages[request.chat_id]
        (message,) = [each for each in known if each.id == request.message_id]
        return chats_api.GetMessageResponse(message=message)

    async def SendMessage(self, request: Any, context: Any) -> chats_api.SendMessageResponse:  # noqa: N802
        self._fake.take(request)
        chat = self._fake.chat_of(request.chat_id)
        if "SendMessage" in self._fake.answers:
            answer: chats_api.SendMessageResponse = self._fake.answers["SendMessage"]
            return answer
        message = self._message(request)
        self._fake.messages[request.chat_id].append(message)
        return chats_api.SendMessageResponse(
            chat=chat, message=message, snapshot_version=chat.versions.snapshot
        )

    async def ListChats(self, request: Any, context: Any) -> chats_api.ListChatsResponse:  # noqa: N802
        self._fake.take(request)
        found = self._fake.chats.values()
        chats = [chat for chat in found if chat.archived == request.archived]
        length = request.page_size or len(chats)
        token = "more" if len(chats) > length else ""
        return chats_api.ListChatsResponse(chats=chats[:length], next_page_token=token)

    async def ListPrompts(self, request: Any, context: Any) -> chats_api.ListPromptsResponse:  # noqa: N802
        self._fake.take(request)
        return chats_api.ListPromptsResponse(prompts=[chats_api.Prompt(id=7, text="again")])

    async def ListTodos(self, request: Any, context: Any) -> chats_api.ListTodosResponse:  # noqa: N802
        self._fake.take(request)
        item = chats_api.Todo(id=1, text="look", status=chats_api.TODO_STATUS_IN_PROGRESS)
        return chats_api.ListTodosResponse(items=[item])

    async def SearchMessages(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.SearchMessagesResponse:
        self._fake.take(request)
        answer: chats_api.SearchMessagesResponse = self._fake.answers["SearchMessages"]
        return answer

    async def UpdateChat(self, request: Any, context: Any) -> chats_api.UpdateChatResponse:  # noqa: N802
        self._fake.take(request)
        chat = self._as_read(request.chat.id, request.chat.etag)
        for path in request.update_mask.paths:
            chat.ClearField(path)
        chat.MergeFrom(request.chat)
        chat.etag = str(int(chat.etag) + 1)
        return chats_api.UpdateChatResponse(chat=chat)

    async def SetArchived(self, request: Any, context: Any) -> chats_api.SetArchivedResponse:  # noqa: N802
        self._fake.take(request)
        chat = self._as_read(request.chat_id, request.etag)
        chat.archived = request.archived
        chat.etag = str(int(chat.etag) + 1)
        return chats_api.SetArchivedResponse(chat=chat)

    async def DeleteChat(self, request: Any, context: Any) -> chats_api.DeleteChatResponse:  # noqa: N802
        self._fake.take(request)
        self._as_read(request.chat_id, request.etag)
        del self._fake.chats[request.chat_id]
        return chats_api.DeleteChatResponse()

    async def ExportChat(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[chats_api.ExportChatResponse]:
        self._fake.take(request)
        yield chats_api.ExportChatResponse(chat=self._fake.chat_of(request.chat_id))
        messages = self._fake.messages[request.chat_id]
        for message in messages:
            yield chats_api.ExportChatResponse(message=message)
        if not self._fake.is_cut_off:
            complete = chats_api.ExportComplete(message_count=len(messages))
            yield chats_api.ExportChatResponse(complete=complete)

    async def EditMessage(self, request: Any, context: Any) -> chats_api.EditMessageResponse:  # noqa: N802
        self._fake.take(request)
        chat = self._fake.chat_of(request.chat_id)
        known = self._fake.messages[request.chat_id]
        gone = [message.id for message in known if message.id >= request.message_id]
        message = self._message(request)
        known[:] = [each for each in known if each.id not in gone] + [message]
        return chats_api.EditMessageResponse(
            message=message,
            deleted_message_ids=gone,
            chat=chat,
            dropped_queued_messages=self._fake.queues.pop(request.chat_id, []),
            snapshot_version=chat.versions.snapshot,
            revert_id=EDIT_REVERT_ID,
        )

    async def DeleteQueuedMessage(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.DeleteQueuedMessageResponse:
        chat = self._chat(request)
        return chats_api.DeleteQueuedMessageResponse(chat=chat)

    async def UpdateQueuedMessage(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.UpdateQueuedMessageResponse:
        self._chat(request)
        queued = self._fake.queues.get(request.chat_id, [])
        return chats_api.UpdateQueuedMessageResponse(queued_messages=queued)

    async def PromoteQueuedMessage(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.PromoteQueuedMessageResponse:
        chat = self._chat(request)
        return chats_api.PromoteQueuedMessageResponse(chat=chat)

    async def ProposeTitle(self, request: Any, context: Any) -> chats_api.ProposeTitleResponse:  # noqa: N802
        self._chat(request)
        return chats_api.ProposeTitleResponse(title="A better title")

    async def ForkChat(self, request: Any, context: Any) -> chats_api.ForkChatResponse:  # noqa: N802
        return chats_api.ForkChatResponse(chat=self._chat(request))

    async def Interrupt(self, request: Any, context: Any) -> chats_api.InterruptResponse:  # noqa: N802
        chat = self._chat(request)
        chat.status = chat_pb2.CHAT_STATUS_INTERRUPTING
        return chats_api.InterruptResponse(chat=chat)

    async def RequestCompaction(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.RequestCompactionResponse:
        return chats_api.RequestCompactionResponse(chat=self._chat(request))

    async def SubmitToolResults(  # noqa: N802
        self, request: Any, context: Any
    ) -> chats_api.SubmitToolResultsResponse:
        return chats_api.SubmitToolResultsResponse(chat=self._chat(request))

    async def ReconcileChat(self, request: Any, context: Any) -> chats_api.ReconcileChatResponse:  # noqa: N802
        chat = self._chat(request)
        chat.status = chat_pb2.CHAT_STATUS_ERROR
        return chats_api.ReconcileChatResponse(chat=chat)

    async def MarkRead(self, request: Any, context: Any) -> chats_api.MarkReadResponse:  # noqa: N802
        self._chat(request)
        return chats_api.MarkReadResponse(last_message_id=request.last_message_id)

    async def GetShares(self, request: Any, context: Any) -> chats_api.GetSharesResponse:  # noqa: N802
        self._chat(request)
        answer: chats_api.GetSharesResponse = self._fake.answers["GetShares"]
        return answer

    async def SetShares(self, request: Any, context: Any) -> chats_api.SetSharesResponse:  # noqa: N802
        self._chat(request)
        return chats_api.SetSharesResponse(shares=request.shares)

    def _chat(self, request: Any) -> chat_pb2.Chat:
        self._fake.take(request)
        return self._fake.chat_of(request.chat_id)

    def _as_read(self, chat_id: str, etag: str) -> chat_pb2.Chat:
        chat = self._fake.chat_of(chat_id)
        if etag not in ("", chat.etag):
            raise Refusal(VERSION_CONFLICT)
        return chat

    def _message(self, request: Any) -> message_pb2.Message:
        known = self._fake.messages.get(request.chat_id, [])
        return message_pb2.Message(
            id=len(known) + 1,
            chat_id=request.chat_id,
            role=message_pb2.ROLE_USER,
            content=request.content,
        )
