"""Methods that control execution: queue, interrupt, compaction, tool results, repair."""

from collections.abc import Callable
from dataclasses import dataclass

from chatd.chats.domain.agents import STOP_AGENT, stop_below
from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import (
    Command,
    DeleteQueuedMessage,
    Interrupt,
    PromoteQueuedMessage,
    Reconcile,
    RequestCompaction,
    SubmitToolResults,
)
from chatd.chats.domain.errors import BadToolResult
from chatd.chats.rpc.claims import reserved
from chatd.chats.rpc.content import results_from_proto
from chatd.chats.rpc.methods import ChatMethods, Context, with_read_only_errors
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, QueuedMessageId, WorkerId
from chatd.primitives.domain.requests import ClientKey
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1 import chat_service_pb2 as api

ControlRequest = (
    api.DeleteQueuedMessageRequest
    | api.PromoteQueuedMessageRequest
    | api.InterruptRequest
    | api.RequestCompactionRequest
    | api.SubmitToolResultsRequest
    | api.ReconcileChatRequest
)

# Returns the command, given the worker that may claim the chat by it.
CommandFor = Callable[[WorkerId | None], Command]


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request of a chat's owner."""

    chat_id: ChatId
    owner: Owner
    key: ClientKey


class ControlMethods(ChatMethods):
    """Controls chats for their owners; each method returns the updated chat."""

    @with_read_only_errors
    async def DeleteQueuedMessage(
        self, request: api.DeleteQueuedMessageRequest, context: Context
    ) -> api.DeleteQueuedMessageResponse:
        """Delete a queued message."""
        queued_id = QueuedMessageId(fields.uuid_of(request.queued_message_id, "queued_message_id"))
        admitted = await self._admit(request)
        chat = await self._execute(admitted, DeleteQueuedMessage(queued_id))
        return api.DeleteQueuedMessageResponse(chat=chat)

    @with_read_only_errors
    async def PromoteQueuedMessage(
        self, request: api.PromoteQueuedMessageRequest, context: Context
    ) -> api.PromoteQueuedMessageResponse:
        """Run a queued message now."""
        queued_id = QueuedMessageId(fields.uuid_of(request.queued_message_id, "queued_message_id"))
        admitted = await self._admit(request)
        chat = await self._execute_and_start(
            admitted, lambda claimed_by: PromoteQueuedMessage(queued_id, claimed_by)
        )
        return api.PromoteQueuedMessageResponse(chat=chat)

    @with_read_only_errors
    async def Interrupt(
        self, request: api.InterruptRequest, context: Context
    ) -> api.InterruptResponse:
        """Stop a turn, and those of the agents below it; one that is over is not changed."""
        turn_id = MessageId(request.turn_message_id)
        admitted = await self._admit(request)
        # Only from this status it starts the next message; from others nothing is claimed, and a
        # turn that began here just before must not be taken for a claim.
        state = await self._stores.chats.state(admitted.chat_id)
        if state.status is Status.REQUIRES_ACTION:
            chat = await self._execute_and_start(
                admitted, lambda claimed_by: Interrupt(turn_id, claimed_by)
            )
        else:
            chat = await self._execute(admitted, Interrupt(turn_id, None))
        await self._tasks.complete(self._interrupt_below(admitted.chat_id))
        return api.InterruptResponse(chat=chat)

    async def _interrupt_below(self, chat_id: ChatId) -> None:
        """Stop the agents below a chat, those too that are started meanwhile."""
        chats = self._stores.chats
        await stop_below(self._stores.agents, chat_id, lambda each: chats.apply(each, STOP_AGENT))

    @with_read_only_errors
    async def RequestCompaction(
        self, request: api.RequestCompactionRequest, context: Context
    ) -> api.RequestCompactionResponse:
        """Summarise the history now."""
        admitted = await self._admit(request)
        await self._admission.to_chat(admitted.chat_id, admitted.owner, admitted.key)
        chat = await self._execute_and_start(admitted, RequestCompaction)
        return api.RequestCompactionResponse(chat=chat)

    @with_read_only_errors
    async def SubmitToolResults(
        self, request: api.SubmitToolResultsRequest, context: Context
    ) -> api.SubmitToolResultsResponse:
        """Submit the results of the calls that the client executes."""
        admitted = await self._admit(request)
        waiting = (await self._stores.chats.state(admitted.chat_id)).pending
        names = {call.tool_call_id: call.tool_name for call in waiting if call.is_asked}
        results = results_from_proto(request.results, names)
        try:
            chat = await self._execute_and_start(
                admitted,
                lambda claimed_by: SubmitToolResults(results, admitted.owner.id, claimed_by),
            )
        except BadToolResult as refusal:
            places = enumerate(result.tool_call_id for result in request.results)
            raise refusal.at(
                {call_id: f"results[{index}].tool_call_id" for index, call_id in places}
            ) from None
        return api.SubmitToolResultsResponse(chat=chat)

    @with_read_only_errors
    async def ReconcileChat(
        self, request: api.ReconcileChatRequest, context: Context
    ) -> api.ReconcileChatResponse:
        """Bring a chat with an impossible state to rest."""
        chat = await self._execute(await self._admit(request), Reconcile())
        return api.ReconcileChatResponse(chat=chat)

    async def _admit(self, request: ControlRequest) -> Admitted:
        """Check that the caller owns the chat."""
        owner = caller_as_owner()
        chat_id = fields.chat_id_of(request.chat_id)
        key = fields.client_key_of(request, request.request_id)
        await self._stores.ownership.require(chat_id, owner.id)
        return Admitted(chat_id, owner, key)

    async def _execute(self, admitted: Admitted, command: Command) -> chat_pb2.Chat:
        """Execute once a command that never claims the chat."""
        await self._stores.keys.once(admitted.chat_id, command, admitted.key)
        return await self._chat(admitted.chat_id, admitted.owner)

    async def _execute_and_start(
        self, admitted: Admitted, command_for: CommandFor
    ) -> chat_pb2.Chat:
        """Execute a command once, and run the chat here if it was claimed by it."""

        async def execute() -> None:
            with reserved(self._claims, admitted.owner) as reservation:
                command = command_for(reservation.claimed_by)
                applied = await self._stores.keys.once(admitted.chat_id, command, admitted.key)
                if applied is not None:
                    reservation.start(applied.state)

        await self._tasks.complete(execute())
        return await self._chat(admitted.chat_id, admitted.owner)
