"""ChatService: every method of the proto, delegated to the class of its kind."""

from collections.abc import AsyncIterator, Callable

import grpc

from chatd.chats.rpc.admission import Admission, SpendAdmission
from chatd.chats.rpc.arrangement import ArrangementMethods
from chatd.chats.rpc.claims import Claims
from chatd.chats.rpc.control import ControlMethods
from chatd.chats.rpc.defaults import Defaults, NoDefaults
from chatd.chats.rpc.reading import ReadMethods
from chatd.chats.rpc.references import References
from chatd.chats.rpc.sending import SendMethods
from chatd.chats.store.creation import NewChat
from chatd.chats.store.stores import Stores
from chatd.primitives.domain.ids import ChatId
from chatd.primitives.rpc.shielded_calls import ShieldedCalls
from chatd.spend.domain.ports import Unlimited
from chatd.users.domain.groups import Groups
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1.chat_service_pb2_grpc import ChatServiceServicer
from parley.tasks import Shielding

Context = grpc.aio.ServicerContext


def ignore_event(new: NewChat) -> None:
    """Ignore a new chat."""


class ChatServicer(ChatServiceServicer):
    """Serves chats; errors are mapped to statuses by the server's table.

    Args:
        stores: The stores of chats.
        claims: The worker of this process, which runs the turns that its calls start.
        groups: The groups of users.
        tasks: Owns the work of calls that must not be cancelled with them.
        references: Rejects ids that do not exist.
        spending: Spend limits; unlimited by default.
        created: Is called with every new chat.
        defaults: Completes requests from the configuration; nothing by default.
        changed: Is called with every chat whose turn setup may have changed.
    """

    def __init__(
        self,
        stores: Stores,
        *,
        claims: Claims,
        groups: Groups,
        tasks: Shielding,
        references: References,
        spending: SpendAdmission | None = None,
        created: Callable[[NewChat], None] = ignore_event,
        defaults: Defaults | None = None,
        changed: Callable[[ChatId], None] = lambda chat_id: None,
    ) -> None:
        shielded_calls = ShieldedCalls(tasks)
        admission = Admission(spending or Unlimited(), groups, stores.keys)
        self._reading = ReadMethods(stores, groups)
        self._sending = SendMethods(
            stores,
            claims,
            shielded_calls,
            admission=admission,
            created=created,
            defaults=defaults or NoDefaults(),
            references=references,
        )
        self._controlling = ControlMethods(stores, claims, shielded_calls, admission=admission)
        self._arranging = ArrangementMethods(
            stores,
            shielded_calls,
            defaults=defaults or NoDefaults(),
            references=references,
            changed=changed,
        )

    async def CreateChat(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateChatRequest, context: Context
    ) -> api.CreateChatResponse:
        """Create a chat with its first message and start its turn."""
        return await self._sending.create(request)

    async def GetChat(  # noqa: N802 (the name is the proto's)
        self, request: api.GetChatRequest, context: Context
    ) -> api.GetChatResponse:
        """Return one chat."""
        return await self._reading.get(request)

    async def ListChats(  # noqa: N802 (the name is the proto's)
        self, request: api.ListChatsRequest, context: Context
    ) -> api.ListChatsResponse:
        """Return a page of chats."""
        return await self._reading.list(request)

    async def UpdateChat(  # noqa: N802 (the name is the proto's)
        self, request: api.UpdateChatRequest, context: Context
    ) -> api.UpdateChatResponse:
        """Update fields beside the execution."""
        async with self._reading.read_only_errors():
            return await self._arranging.update(request)

    async def SetArchived(  # noqa: N802 (the name is the proto's)
        self, request: api.SetArchivedRequest, context: Context
    ) -> api.SetArchivedResponse:
        """Archive or unarchive a chat tree."""
        async with self._reading.read_only_errors():
            return await self._arranging.set_archived(request)

    async def DeleteChat(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteChatRequest, context: Context
    ) -> api.DeleteChatResponse:
        """Delete a chat tree permanently."""
        async with self._reading.read_only_errors():
            return await self._arranging.delete(request)

    async def ExportChat(  # noqa: N802 (the name is the proto's)
        self, request: api.ExportChatRequest, context: Context
    ) -> AsyncIterator[api.ExportChatResponse]:
        """Stream a whole chat."""
        async for piece in self._reading.export(request):
            yield piece

    async def ListMessages(  # noqa: N802 (the name is the proto's)
        self, request: api.ListMessagesRequest, context: Context
    ) -> api.ListMessagesResponse:
        """Return a page of the history."""
        return await self._reading.list_messages(request)

    async def SendMessage(  # noqa: N802 (the name is the proto's)
        self, request: api.SendMessageRequest, context: Context
    ) -> api.SendMessageResponse:
        """Add a user message."""
        async with self._reading.read_only_errors():
            return await self._sending.send(request)

    async def EditMessage(  # noqa: N802 (the name is the proto's)
        self, request: api.EditMessageRequest, context: Context
    ) -> api.EditMessageResponse:
        """Replace a user message and run again from there."""
        async with self._reading.read_only_errors():
            return await self._sending.edit(request)

    async def DeleteQueuedMessage(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteQueuedMessageRequest, context: Context
    ) -> api.DeleteQueuedMessageResponse:
        """Delete a queued message."""
        async with self._reading.read_only_errors():
            return await self._controlling.delete_queued(request)

    async def PromoteQueuedMessage(  # noqa: N802 (the name is the proto's)
        self, request: api.PromoteQueuedMessageRequest, context: Context
    ) -> api.PromoteQueuedMessageResponse:
        """Run a queued message now."""
        async with self._reading.read_only_errors():
            return await self._controlling.promote_queued(request)

    async def Interrupt(  # noqa: N802 (the name is the proto's)
        self, request: api.InterruptRequest, context: Context
    ) -> api.InterruptResponse:
        """Stop the turn and keep its output."""
        async with self._reading.read_only_errors():
            return await self._controlling.interrupt(request)

    async def RequestCompaction(  # noqa: N802 (the name is the proto's)
        self, request: api.RequestCompactionRequest, context: Context
    ) -> api.RequestCompactionResponse:
        """Summarise the history now."""
        async with self._reading.read_only_errors():
            return await self._controlling.request_compaction(request)

    async def SubmitToolResults(  # noqa: N802 (the name is the proto's)
        self, request: api.SubmitToolResultsRequest, context: Context
    ) -> api.SubmitToolResultsResponse:
        """Submit the results of client tools."""
        async with self._reading.read_only_errors():
            return await self._controlling.submit_tool_results(request)

    async def ReconcileChat(  # noqa: N802 (the name is the proto's)
        self, request: api.ReconcileChatRequest, context: Context
    ) -> api.ReconcileChatResponse:
        """Bring a chat with an impossible state to rest."""
        async with self._reading.read_only_errors():
            return await self._controlling.reconcile(request)

    async def MarkRead(  # noqa: N802 (the name is the proto's)
        self, request: api.MarkReadRequest, context: Context
    ) -> api.MarkReadResponse:
        """Store how far the owner has read."""
        async with self._reading.read_only_errors():
            return await self._arranging.mark_read(request)

    async def GetShares(  # noqa: N802 (the name is the proto's)
        self, request: api.GetSharesRequest, context: Context
    ) -> api.GetSharesResponse:
        """Return the shares of a chat."""
        async with self._reading.read_only_errors():
            return await self._arranging.get_shares(request)

    async def SetShares(  # noqa: N802 (the name is the proto's)
        self, request: api.SetSharesRequest, context: Context
    ) -> api.SetSharesResponse:
        """Replace the shares of a chat."""
        async with self._reading.read_only_errors():
            return await self._arranging.set_shares(request)
