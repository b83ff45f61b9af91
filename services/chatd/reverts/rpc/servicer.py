"""RevertService: goes back in chats, for their owners."""

from collections.abc import Callable
from typing import Final, Protocol

from chatd.chats.domain.chat import ChatState, DoneRevert, Facts, Revert, RevertKind
from chatd.chats.domain.commands import Command, RevertChat, UndoRevert
from chatd.chats.domain.errors import RevertNotFound
from chatd.chats.domain.revert_decisions import require_editable
from chatd.chats.rpc.claims import Claims, reserved
from chatd.chats.rpc.convert import chat_to_proto, queued_to_proto
from chatd.chats.rpc.methods import Context, shares_of, with_read_only_errors
from chatd.chats.rpc.revert_ids import revert_id_of
from chatd.chats.store.stores import Stores
from chatd.models.rpc.administration import page_of
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, RevertId, WorkerId
from chatd.primitives.domain.requests import ClientKey, Reader
from chatd.primitives.rpc import fields
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import chat_pb2, revert_pb2
from parley.api.chat.v1 import revert_service_pb2 as api
from parley.api.chat.v1.revert_service_pb2_grpc import RevertServiceServicer
from parley.api.workspace.v1 import checkpoint_pb2
from parley.tasks import Shielding

KINDS = {
    RevertKind.HISTORY: revert_pb2.REVERT_KIND_HISTORY,
    RevertKind.UNDO: revert_pb2.REVERT_KIND_UNDO,
    RevertKind.EDIT: revert_pb2.REVERT_KIND_EDIT,
}

#: Older ones are not listed.
REVERTS_MAX: Final = 1000


class FilePreviews(Protocol):
    """Tells what a restore of files would do."""

    async def preview(
        self, chat_id: ChatId, owner: Owner, message_id: MessageId
    ) -> checkpoint_pb2.RestoreReport:
        """Return what a restore to before a message would do.

        Raises:
            RestoreFailed: It cannot be determined now.
            ChatError: The workspace of the chat has to be started first, or cannot be used.
        """
        ...


class RevertServicer(RevertServiceServicer):
    """Serves reverts; with files, the worker of the chat completes them."""

    def __init__(
        self,
        stores: Stores,
        *,
        claims: Claims,
        groups: Groups,
        tasks: Shielding,
        previews: FilePreviews,
        changed: Callable[[ChatId], None],
    ) -> None:
        self._changed = changed
        self._stores = stores
        self._groups = groups
        self._claims = claims
        self._tasks = tasks
        self._previews = previews

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        return await shares_of(self._stores, self._groups, chat_id)

    @with_read_only_errors
    async def PreviewRevert(
        self, request: api.PreviewRevertRequest, context: Context
    ) -> api.PreviewRevertResponse:
        """Tell what a revert would do."""
        owner = caller_as_owner()
        chat_id = fields.chat_id_of(request.chat_id)
        message_id = MessageId(request.message_id)
        await self._stores.ownership.require(chat_id, owner.id)
        history = await self._stores.chats.history(chat_id)
        deleted = [message for message in history if message.id >= message_id]
        target = deleted[0] if deleted and deleted[0].id == message_id else None
        require_editable(message_id, Facts(target=target))
        response = api.PreviewRevertResponse(
            deleted_messages=len(deleted),
            dropped_messages=len(await self._stores.chats.queue(chat_id)),
        )
        if request.restore_files:
            response.files.CopyFrom(await self._previews.preview(chat_id, owner, message_id))
        return response

    @with_read_only_errors
    async def RevertChat(
        self, request: api.RevertChatRequest, context: Context
    ) -> api.RevertChatResponse:
        """Go back to before a message."""
        owner = caller_as_owner()
        chat_id = fields.chat_id_of(request.chat_id)
        key = fields.client_key_of(request, request.request_id)
        message_id, restores_files = MessageId(request.message_id), request.restore_files
        revert_id = revert_id_of(chat_id, key)
        await self._begin(
            chat_id,
            owner,
            key,
            lambda claimed_by: RevertChat(revert_id, message_id, restores_files, claimed_by),
        )
        return api.RevertChatResponse(
            revert=await self._revert(chat_id, revert_id),
            chat=await self._chat(chat_id, owner),
            dropped_queued_messages=await self._dropped(chat_id, owner, key),
        )

    @with_read_only_errors
    async def UndoRevert(
        self, request: api.UndoRevertRequest, context: Context
    ) -> api.UndoRevertResponse:
        """Undo a revert."""
        owner = caller_as_owner()
        chat_id = fields.chat_id_of(request.chat_id)
        key = fields.client_key_of(request, request.request_id)
        undone_id = RevertId(fields.uuid_of(request.revert_id, "revert_id"))
        revert_id = revert_id_of(chat_id, key)
        await self._begin(
            chat_id,
            owner,
            key,
            lambda claimed_by: UndoRevert(revert_id, undone_id, claimed_by),
        )
        return api.UndoRevertResponse(
            revert=await self._revert(chat_id, revert_id),
            chat=await self._chat(chat_id, owner),
            dropped_queued_messages=await self._dropped(chat_id, owner, key),
        )

    async def GetRevert(
        self, request: api.GetRevertRequest, context: Context
    ) -> api.GetRevertResponse:
        """Read a revert."""
        chat_id = fields.chat_id_of(request.chat_id)
        revert_id = RevertId(fields.uuid_of(request.revert_id, "revert_id"))
        await self._stores.ownership.require(chat_id, caller_as_owner().id)
        return api.GetRevertResponse(revert=await self._revert(chat_id, revert_id))

    async def ListReverts(
        self, request: api.ListRevertsRequest, context: Context
    ) -> api.ListRevertsResponse:
        """List the reverts of a chat."""
        chat_id = fields.chat_id_of(request.chat_id)
        await self._stores.ownership.require(chat_id, caller_as_owner().id)
        state = await self._stores.chats.state(chat_id)
        done = await self._stores.chats.done_reverts(chat_id, REVERTS_MAX)
        listed = [_done_to_proto(state, each) for each in done]
        if state.revert is not None:
            listed.insert(0, _to_proto(state, state.revert, revert_pb2.REVERT_STATE_RUNNING))
        page, token = page_of(
            listed, lambda revert: revert.id, request.page_size, request.page_token
        )
        return api.ListRevertsResponse(reverts=page, next_page_token=token)

    async def _begin(
        self,
        chat_id: ChatId,
        owner: Owner,
        key: ClientKey,
        command_for: Callable[[WorkerId | None], Command],
    ) -> None:
        """Execute a command once, and complete the revert here if it was claimed by it."""
        await self._stores.ownership.require(chat_id, owner.id)

        async def begin() -> None:
            with reserved(self._claims, owner) as reservation:
                command = command_for(reservation.claimed_by)
                applied = await self._stores.keys.once(chat_id, command, key)
                self._changed(chat_id)  # Its mode may be another one.
                if applied is not None:
                    reservation.start(applied.state)

        await self._tasks.complete(begin())

    async def _revert(self, chat_id: ChatId, revert_id: RevertId) -> revert_pb2.Revert:
        """Return a revert: under way, or completed.

        Raises:
            RevertNotFound: There is none, or it failed.
        """
        state = await self._stores.chats.state(chat_id)
        if state.revert is not None and state.revert.revert_id == revert_id:
            return _to_proto(state, state.revert, revert_pb2.REVERT_STATE_RUNNING)
        done = await self._stores.chats.done_revert(chat_id, revert_id)
        if done is None:
            raise RevertNotFound(revert_id)
        return _done_to_proto(state, done)

    async def _dropped(
        self, chat_id: ChatId, owner: Owner, key: ClientKey
    ) -> list[chat_pb2.QueuedMessage]:
        dropped = await self._stores.keys.dropped(chat_id, owner_id=owner.id, key=key.key)
        return [queued_to_proto(queued) for queued in dropped]

    async def _chat(self, chat_id: ChatId, owner: Owner) -> chat_pb2.Chat:
        return chat_to_proto(await self._stores.reading.get(chat_id, Reader(owner.id)))


def _to_proto(
    state: ChatState, revert: Revert, how_far: "revert_pb2.RevertState.ValueType"
) -> revert_pb2.Revert:
    return revert_pb2.Revert(
        id=revert.revert_id,
        chat_id=state.chat_id,
        kind=KINDS[revert.kind],
        state=how_far,
        message_id=revert.message_id,
        undone_revert_id=revert.undone_id or "",
    )


def _done_to_proto(state: ChatState, done: DoneRevert) -> revert_pb2.Revert:
    revert = _to_proto(state, done.revert, revert_pb2.REVERT_STATE_DONE)
    revert.undoable = done.revert.is_undoable and not done.is_superseded
    if done.done_at is not None:
        revert.done_at.FromDatetime(done.done_at)
    if done.revert.restores_files:
        revert.files.CopyFrom(checkpoint_pb2.RestoreReport.FromString(done.report))
    return revert
