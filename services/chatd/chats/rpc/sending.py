"""Methods that add messages to chats: create, send, edit."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from chatd.chats.domain.chat import ChatState, NewMessage, QueuedMessage
from chatd.chats.domain.commands import (
    BusyBehavior,
    ChangeQueuedMessage,
    EditMessage,
    SendMessage,
)
from chatd.chats.domain.errors import HookDenied, HookFailed
from chatd.chats.rpc.claims import reserved
from chatd.chats.rpc.content import (
    client_tools_from_proto,
    content_from_proto,
    file_ids_of,
    title_of,
)
from chatd.chats.rpc.convert import (
    MODE,
    chat_to_proto,
    message_to_proto,
    queued_to_proto,
    state_to_proto,
)
from chatd.chats.rpc.methods import ChatMethods, Context, with_read_only_errors
from chatd.chats.rpc.origins import origin_of_caller
from chatd.chats.rpc.reference_checks import REFUSALS, ReferenceChecks
from chatd.chats.rpc.revert_ids import revert_id_of
from chatd.chats.store.applying import Applied
from chatd.chats.store.creation import NewChat
from chatd.chats.store.metadata import ChatChanges
from chatd.chats.store.reading import Bounds
from chatd.content.domain import parts
from chatd.content.domain.errors import FileNotFound
from chatd.content.domain.messages import MessageOrigin, Role, Visibility
from chatd.content.domain.parts import Part
from chatd.models.domain.profile import NO_CHOICE, ModelChoice
from chatd.models.rpc.convert import EFFORT_OF
from chatd.primitives.domain.errors import InvalidRequest, RequestIdReused, all_of
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, QueuedMessageId
from chatd.primitives.domain.requests import ClientKey, Reader
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import chat_service_pb2 as api

BUSY = {
    api.BUSY_BEHAVIOR_UNSPECIFIED: BusyBehavior.QUEUE,
    api.BUSY_BEHAVIOR_QUEUE: BusyBehavior.QUEUE,
    api.BUSY_BEHAVIOR_INTERRUPT: BusyBehavior.INTERRUPT,
}
MODE_OF = {value: mode for mode, value in MODE.items()}


class _NewRequest(Exception):
    """The request is no repetition."""


@dataclass(frozen=True, slots=True)
class MessageRequest:
    """A validated message for a chat of the caller."""

    chat_id: ChatId
    owner: Owner
    key: ClientKey
    message: NewMessage


class SendMethods(ChatMethods):
    """Adds messages of owners, and runs the turns that they start in this process."""

    async def CreateChat(
        self, request: api.CreateChatRequest, context: Context
    ) -> api.CreateChatResponse:
        """Create a chat with its first message and start its turn."""
        return await self.create(request, origin_of_caller())

    async def create(
        self, request: api.CreateChatRequest, origin: MessageOrigin
    ) -> api.CreateChatResponse:
        """Create a chat whose first message has this origin."""
        owner = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        new = _asked_chat(request, owner, origin)
        group_ids = await self._admission.to_new_chat(new.id, owner, key)
        new = await self._checked_chat(replace(new, owner_group_ids=group_ids), key)
        new = await self._hooked_chat(new, key, request.system_prompt)

        async def add() -> ChatState | None:
            with reserved(self._claims, owner) as reservation:
                state = await self._stores.chats.add(
                    new, claimed_by=reservation.claimed_by, client_key=key
                )
                if state is not None:
                    reservation.start(state)
                    self._stores.ownership.learn(new.id, owner.id)
                    self._created(new)
                return state

        if await self._tasks.complete(add()) is None:
            # A chat that outlived its key has the same owner, who used this id long ago.
            await self._stores.keys.require_used(new.id, key, RequestIdReused(key.key))
        outcome = await self._stores.keys.outcome(new.id, owner_id=owner.id, key=key.key)
        return api.CreateChatResponse(
            chat=chat_to_proto(outcome.chat),
            message=message_to_proto(new.id, outcome.turn_message),
        )

    @with_read_only_errors
    async def SendMessage(
        self, request: api.SendMessageRequest, context: Context
    ) -> api.SendMessageResponse:
        """Add a message: it starts a turn, is queued, or interrupts and runs next."""
        return await self.send(request, origin_of_caller())

    async def send(
        self, request: api.SendMessageRequest, origin: MessageOrigin
    ) -> api.SendMessageResponse:
        """Add a message of this origin, which also tells whether it may answer a question."""
        busy = BUSY[request.busy_behavior]
        is_brief = request.brief
        # The verbosity of the response is no part of the body: a repeated request may want more.
        request.ClearField("brief")
        server_ids = _chosen_servers(request)
        asked = await self._asked(request, origin, server_ids)
        await self._choose_servers(asked, server_ids)
        queued_id = QueuedMessageId(str(uuid.uuid5(uuid.UUID(asked.chat_id), asked.key.key)))

        async def send() -> Applied | None:
            with reserved(self._claims, asked.owner) as reservation:
                command = SendMessage(asked.message, queued_id, reservation.claimed_by, busy)
                applied = await self._stores.keys.once(asked.chat_id, command, asked.key)
                if applied is not None:
                    reservation.start(applied.state)
                return applied

        sent = await self._tasks.complete(send())
        if is_brief and sent is not None and sent.message is not None:
            return api.SendMessageResponse(
                chat=state_to_proto(sent.state),
                message=message_to_proto(asked.chat_id, sent.message),
                snapshot_version=sent.state.snapshot_version,
            )
        outcome = await self._stores.keys.outcome(
            asked.chat_id, owner_id=asked.owner.id, key=asked.key.key
        )
        chat = chat_to_proto(outcome.chat)
        answer = api.SendMessageResponse(
            chat=chat,
            replayed=sent is None,
            queued=outcome.is_queued,
            snapshot_version=chat.versions.snapshot,
            answered_action_id=outcome.answered_action_id,
        )
        if outcome.answered_action_id:
            return answer
        if outcome.is_queued:
            queued = QueuedMessage(
                queued_id,
                asked.message.content,
                asked.owner.id,
                outcome.happened_at,
                asked.message.choice,
                asked.message.origin,
            )
            answer.queued_message.CopyFrom(queued_to_proto(queued))
        else:
            answer.message.CopyFrom(message_to_proto(asked.chat_id, outcome.turn_message))
        return answer

    @with_read_only_errors
    async def EditMessage(
        self, request: api.EditMessageRequest, context: Context
    ) -> api.EditMessageResponse:
        """Replace a message and run again from there."""
        if request.message_id < 1:
            raise InvalidRequest("message_id", "is less than 1")
        message_id = MessageId(request.message_id)
        asked = await self._asked(request, origin_of_caller())
        chat_id, owner = asked.chat_id, asked.owner
        revert_id, restores_files = revert_id_of(chat_id, asked.key), request.restore_files

        async def edit() -> None:
            with reserved(self._claims, owner) as reservation:
                claimed_by = reservation.claimed_by
                command = EditMessage(
                    message_id, asked.message, claimed_by, revert_id, restores_files
                )
                applied = await self._stores.keys.once(chat_id, command, asked.key)
                if applied is not None:
                    reservation.start(applied.state)

        await self._tasks.complete(edit())
        outcome = await self._stores.keys.outcome(chat_id, owner_id=owner.id, key=asked.key.key)
        deleted = await self._stores.reading.deleted_at(
            chat_id, owner_id=owner.id, snapshot_version=outcome.snapshot_version
        )
        chat = chat_to_proto(outcome.chat)
        return api.EditMessageResponse(
            message=message_to_proto(chat_id, outcome.turn_message),
            deleted_message_ids=deleted,
            dropped_queued_messages=[queued_to_proto(queued) for queued in outcome.dropped],
            chat=chat,
            snapshot_version=chat.versions.snapshot,
            revert_id=revert_id,
        )

    @with_read_only_errors
    async def UpdateQueuedMessage(
        self, request: api.UpdateQueuedMessageRequest, context: Context
    ) -> api.UpdateQueuedMessageResponse:
        """Change what a queued message says, its model or its place."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        queued_id = QueuedMessageId(fields.uuid_of(request.queued_message_id, "queued_message_id"))
        key = fields.client_key_of(request, request.request_id)
        message = NewMessage(
            Role.USER, content_from_proto(request.content), owner.id, choice=_choice_of(request)
        )
        if not message.content and message.choice == NO_CHOICE and not request.place:
            raise InvalidRequest("content", "give content, model_id, reasoning_effort or place")
        await self._stores.ownership.require(chat_id, owner.id)
        message = await self._checked_message(MessageRequest(chat_id, owner, key, message), None)
        if file_ids := file_ids_of(message.content):
            await self._stores.attachments.hold(chat_id, file_ids, owner_id=owner.id)
        content = origin = None
        if message.content:
            content = await self._hooked(chat_id, owner, key, message.content)
            origin = origin_of_caller()
        choice = None if message.choice == NO_CHOICE else message.choice
        command = ChangeQueuedMessage(queued_id, content, choice, request.place or None, origin)
        await self._stores.keys.once(chat_id, command, key)
        page = await self._stores.reading.page(chat_id, Reader(owner.id), Bounds(0, 0, 1))
        return api.UpdateQueuedMessageResponse(
            queued_messages=[queued_to_proto(queued) for queued in page.queue]
        )

    async def _hooked(
        self,
        chat_id: ChatId,
        owner: Owner,
        key: ClientKey,
        content: tuple[Part, ...],
        system_prompt: str = "",
    ) -> tuple[Part, ...]:
        """Return the content as hooks accept it; a repeated request passes in any case.

        Raises:
            HookDenied: A hook refuses it.
            HookFailed: One that fails closed failed.
        """
        try:
            return await self._hooks.submitted(chat_id, owner, key.key, content, system_prompt)
        except (HookDenied, HookFailed) as refusal:
            await self._stores.keys.require_used(chat_id, key, refusal)
            return content

    async def _hooked_chat(self, new: NewChat, key: ClientKey, system_prompt: str) -> NewChat:
        """Return a new chat with its first message, and the title from it, as hooks accept it."""
        *before, message = new.messages
        content = await self._hooked(new.id, new.owner, key, message.content, system_prompt)
        if content == message.content:
            return new
        title = new.title if new.has_own_title else title_of(content)
        return replace(new, title=title, messages=(*before, replace(message, content=content)))

    async def _checked_chat(self, new: NewChat, key: ClientKey) -> NewChat:
        """Return a new chat, completed, after checking that its ids exist.

        A repeated request passes, even if objects that it names were deleted since.

        Raises:
            UnknownIds: Some of them do not exist.
            CheckUnavailable: A service that checks them does not answer.
            ModelNotFound: There is no such model.
            FileNotFound: Files of its message do not exist.
        """
        checks, references, owner = ReferenceChecks(), self._references, new.owner
        check = references.require_workspace(new.workspace_id, owner.id, "workspace_id")
        await checks.run(check, None)
        server_ids = new.mcp_server_ids or ()
        check = references.require_servers(new.id, owner, server_ids, "mcp_server_ids")
        await checks.run(check, None)
        *before, message = new.messages
        content = await checks.run(self._with_files(message.content, owner.id), message.content)
        described = replace(new, messages=(*before, replace(message, content=content)))
        completed = await checks.run(self._defaults.complete(described), described)
        return completed if await self._is_accepted(checks, new.id, key) else new

    async def _is_accepted(self, checks: ReferenceChecks, chat_id: ChatId, key: ClientKey) -> bool:
        """Return whether all checks passed; False for a repeated request for which some did not."""
        try:
            checks.finish()
        except REFUSALS as refusal:
            await self._stores.keys.require_used(chat_id, key, refusal)
            return False
        return True

    async def _choose_servers(
        self, asked: MessageRequest, server_ids: tuple[str, ...] | None
    ) -> None:
        """Change the MCP servers of the chat with a message, unless the request is a repetition."""
        if server_ids is None:
            return
        try:
            await self._stores.keys.require_used(asked.chat_id, asked.key, _NewRequest())
        except _NewRequest:
            await self._stores.metadata.change(
                asked.chat_id,
                owner_id=asked.owner.id,
                changes=ChatChanges(mcp_server_ids=server_ids),
            )
            self._changed(asked.chat_id)

    async def _checked_message(
        self, asked: MessageRequest, server_ids: tuple[str, ...] | None
    ) -> NewMessage:
        """Return a message, completed, after checking that its ids exist.

        A repeated request passes, even if objects that it names were deleted since.

        Raises:
            UnknownIds: Some of them do not exist.
            CheckUnavailable: No mcpgateway answers.
            ModelNotFound: There is no such model.
            FileNotFound: Files of the message do not exist.
        """
        checks, message, owner = ReferenceChecks(), asked.message, asked.owner
        wanted = message.choice or NO_CHOICE
        choice = await checks.model(self._defaults.choice(wanted), "model_id", wanted)
        content = await checks.run(self._with_files(message.content, owner.id), message.content)
        if server_ids is not None:
            chat = await self._stores.reading.get(asked.chat_id, Reader(owner.id))
            stored = chat.mcp_server_ids or ()
            check = self._references.require_servers(
                asked.chat_id, owner, server_ids, "mcp_server_ids", stored=stored
            )
            await checks.run(check, None)
        if not await self._is_accepted(checks, asked.chat_id, asked.key):
            return message
        return replace(message, content=content, choice=choice)

    async def _asked(
        self,
        request: api.SendMessageRequest | api.EditMessageRequest,
        origin: MessageOrigin,
        server_ids: tuple[str, ...] | None = None,
    ) -> MessageRequest:
        """Run the checks shared by send and edit, and check that the caller owns the chat."""
        owner = caller_as_owner()
        chat_id = fields.chat_id_of(request.chat_id)
        key = fields.client_key_of(request, request.request_id)
        content = content_from_proto(request.content)
        choice = _choice_of(request)
        message = NewMessage(Role.USER, content, owner.id, choice=choice, origin=origin)
        await self._stores.ownership.require(chat_id, owner.id)
        asked = MessageRequest(chat_id, owner, key, message)
        message = await self._checked_message(asked, server_ids)
        await self._admission.to_chat(chat_id, owner, key)
        if file_ids := file_ids_of(content):
            await self._stores.attachments.hold(chat_id, file_ids, owner_id=owner.id)
        content = await self._hooked(chat_id, owner, key, message.content)
        if content is not message.content:
            message = replace(message, content=content)
        return MessageRequest(chat_id, owner, key, message)

    async def _with_files(self, content: tuple[Part, ...], owner_id: OwnerId) -> tuple[Part, ...]:
        """Return the content with files described as stored, not as the caller named them.

        Raises:
            FileNotFound: Some of them do not exist for this owner.
        """
        file_ids = file_ids_of(content)
        if not file_ids:
            return content
        stored = await self._stores.attachments.find(file_ids, owner_id=owner_id)
        unknown = {
            f"content[{index}].file.file_id": part.file_id
            for index, part in enumerate(content)
            if isinstance(part, parts.File) and part.file_id not in stored
        }
        if unknown:
            raise FileNotFound(next(iter(unknown.values())), tuple(unknown))
        return tuple(
            stored[part.file_id] if isinstance(part, parts.File) else part for part in content
        )


def _choice_of(
    request: (
        api.CreateChatRequest
        | api.SendMessageRequest
        | api.EditMessageRequest
        | api.UpdateQueuedMessageRequest
    ),
) -> ModelChoice:
    return ModelChoice(request.model_id.strip(), EFFORT_OF[request.reasoning_effort])


def _asked_chat(request: api.CreateChatRequest, owner: Owner, origin: MessageOrigin) -> NewChat:
    """Return the requested chat; its files are not looked up yet.

    Raises:
        InvalidRequest: With all problems of the request.
    """
    try:
        return _new_chat(request, owner, origin, content_from_proto(request.content))
    except InvalidRequest:
        # The first problem ended it; now the others are collected as well.
        checks: tuple[Callable[[], object], ...] = (
            lambda: content_from_proto(request.content),
            lambda: _new_chat_id(request, owner.id),
            lambda: client_tools_from_proto(request.client_tools),
        )
        all_of(checks)
        raise


def _new_chat(
    request: api.CreateChatRequest,
    owner: Owner,
    origin: MessageOrigin,
    content: tuple[Part, ...],
) -> NewChat:
    own_title = request.title.strip()
    choice = _choice_of(request)
    message = NewMessage(Role.USER, content, owner.id, choice=choice, origin=origin)
    return NewChat(
        id=_new_chat_id(request, owner.id),
        owner=owner,
        title=own_title or title_of(content),
        has_own_title=bool(own_title),
        messages=_first_messages(request.system_prompt, message),
        model_id=choice.model_id,
        reasoning_effort=choice.reasoning_effort,
        mode=MODE_OF[request.mode],
        workspace_id=fields.optional_uuid(request.workspace_id, "workspace_id"),
        mcp_server_ids=_chosen_servers(request),
        labels=dict(request.labels),
        client_tools=client_tools_from_proto(request.client_tools),
        file_ids=file_ids_of(content),
        is_unattended=request.unattended,
        fallback_model_id=request.fallback_model_id.strip(),
    )


def _chosen_servers(
    request: api.CreateChatRequest | api.SendMessageRequest,
) -> tuple[str, ...] | None:
    """Return the MCP servers of a request; None if it does not choose any."""
    if request.HasField("mcp_servers"):
        return fields.mcp_server_ids(request.mcp_servers.mcp_server_ids)
    if isinstance(request, api.CreateChatRequest) and request.mcp_server_ids:
        return fields.mcp_server_ids(request.mcp_server_ids)
    return None


def _first_messages(system_prompt: str, message: NewMessage) -> tuple[NewMessage, ...]:
    """Return the first messages; the system prompt comes first, visible to the model only."""
    if not system_prompt.strip():
        return (message,)
    instructions = NewMessage(
        Role.SYSTEM, (parts.Text(system_prompt),), message.created_by, visibility=Visibility.MODEL
    )
    return (instructions, message)


def _new_chat_id(request: api.CreateChatRequest, owner_id: OwnerId) -> ChatId:
    """Derive the id from user and request id, so that a repeated request finds its chat."""
    derived = str(uuid.uuid5(uuid.UUID(owner_id), request.request_id))
    if request.chat_id and fields.chat_id_of(request.chat_id) != derived:
        raise InvalidRequest("chat_id", "is not the UUIDv5 of user and request id")
    return ChatId(derived)
