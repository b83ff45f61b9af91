"""Methods that copy chats."""

import uuid

from chatd.chats.domain.chat import ChatState
from chatd.chats.domain.forks import fork_at
from chatd.chats.domain.views import ChatView
from chatd.chats.rpc.methods import ChatMethods, Context, with_read_only_errors
from chatd.primitives.domain.errors import VersionConflict
from chatd.primitives.domain.ids import ChatId, MessageId, Owner
from chatd.primitives.domain.requests import ClientKey, Reader
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import chat_service_pb2 as api

TRIES = 5


class ForkMethods(ChatMethods):
    """Copies chats for their owners."""

    @with_read_only_errors
    async def ForkChat(
        self, request: api.ForkChatRequest, context: Context
    ) -> api.ForkChatResponse:
        """Copy a chat up to a message."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        key = fields.client_key_of(request, request.request_id)
        new_id = ChatId(str(uuid.uuid5(uuid.UUID(owner.id), f"fork {key.key}")))
        source = await self._stores.reading.get(chat_id, Reader(owner.id))
        await self._stores.ownership.require(chat_id, owner.id)
        workspace_id = ""
        if request.workspace == api.FORK_WORKSPACE_USE_SAME:
            workspace_id = source.workspace_id
        elif request.workspace == api.FORK_WORKSPACE_USE_COPY:
            workspace_id = await self._fork_workspace(chat_id, owner, key)
        await self._tasks.complete(self._fork(request, source, new_id, workspace_id, key))
        return api.ForkChatResponse(chat=await self._chat(new_id, owner))

    async def _fork(
        self,
        request: api.ForkChatRequest,
        source: ChatView,
        new_id: ChatId,
        workspace_id: str,
        key: ClientKey,
    ) -> None:
        """Copy the chat as it was read; if it changed meanwhile, read it again."""
        owner: Owner = source.owner
        for _ in range(TRIES):
            state: ChatState = await self._stores.chats.state(source.state.chat_id)
            history = await self._stores.chats.history(source.state.chat_id)
            made = await self._stores.forks.add(
                source.state.chat_id,
                new_id,
                fork_at(history, MessageId(request.message_id)),
                owner_id=owner.id,
                seen_version=state.snapshot_version,
                title=request.title.strip() or source.title,
                workspace_id=workspace_id,
                client_key=key,
            )
            if made is not None:
                self._stores.chats.publish_state(made)
                self._stores.ownership.learn(new_id, owner.id)
                return
            if await self._stores.keys.is_used(new_id, key):
                return
        raise VersionConflict(source.state.chat_id)
