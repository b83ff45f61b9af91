"""Methods for metadata: fields, archive, deletion, read marks, shares."""

from dataclasses import replace
from functools import partial
from typing import Any

from chatd.chats.rpc.convert import share_to_proto
from chatd.chats.rpc.defaults import fallback_id
from chatd.chats.rpc.methods import ChatMethods, Context, with_read_only_errors
from chatd.chats.rpc.reference_checks import ReferenceChecks
from chatd.chats.rpc.sending import MODE_OF
from chatd.chats.store.metadata import ChatChanges
from chatd.models.domain.profile import ModelChoice
from chatd.models.rpc.convert import EFFORT_OF
from chatd.primitives.domain.errors import ChatNotFound, InvalidRequest, all_of
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.primitives.domain.requests import Reader
from chatd.primitives.rpc import fields
from chatd.users.domain.grantees import Grantee, GranteeKind
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1 import chat_service_pb2 as api

CHANGEABLE = (
    "title",
    "labels",
    "pin_order",
    "mode",
    "model_id",
    "reasoning_effort",
    "workspace_id",
    "mcp_server_ids",
    "fallback_model_id",
)


class ArrangementMethods(ChatMethods):
    """Changes the metadata of chats for their owners; all methods are idempotent."""

    @with_read_only_errors
    async def UpdateChat(
        self, request: api.UpdateChatRequest, context: Context
    ) -> api.UpdateChatResponse:
        """Update fields of a chat."""
        owner = caller_as_owner()
        chat_id = ChatId(fields.uuid_of(request.chat.id, "chat.id"))
        changes = changes_of(request.chat, tuple(request.update_mask.paths))
        changes = await self._checked_changes(chat_id, owner, changes)
        await self._stores.metadata.change(
            chat_id, owner_id=owner.id, changes=changes, etag=request.chat.etag
        )
        self._changed(chat_id)
        return api.UpdateChatResponse(chat=await self._chat(chat_id, owner))

    @with_read_only_errors
    async def SetArchived(
        self, request: api.SetArchivedRequest, context: Context
    ) -> api.SetArchivedResponse:
        """Archive or unarchive a chat tree."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        await self._tasks.complete(
            self._stores.trees.set_archived(
                chat_id, owner_id=owner.id, archived=request.archived, etag=request.etag
            )
        )
        return api.SetArchivedResponse(chat=await self._chat(chat_id, owner))

    @with_read_only_errors
    async def DeleteChat(
        self, request: api.DeleteChatRequest, context: Context
    ) -> api.DeleteChatResponse:
        """Delete a chat tree permanently."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        await self._tasks.complete(
            self._stores.trees.delete(chat_id, owner_id=owner.id, etag=request.etag)
        )
        return api.DeleteChatResponse()

    @with_read_only_errors
    async def MarkRead(
        self, request: api.MarkReadRequest, context: Context
    ) -> api.MarkReadResponse:
        """Move the owner's read mark forward."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        mark = await self._stores.metadata.mark_read(
            chat_id, owner_id=owner.id, message_id=request.last_message_id
        )
        return api.MarkReadResponse(last_message_id=mark)

    @with_read_only_errors
    async def ProposeTitle(
        self, request: api.ProposeTitleRequest, context: Context
    ) -> api.ProposeTitleResponse:
        """Let a model write a title, and use it if that is wanted."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        await self._stores.ownership.require(chat_id, owner.id)
        title = await self._propose_title(chat_id, owner)
        if request.use:
            await self._stores.metadata.change(
                chat_id, owner_id=owner.id, changes=ChatChanges(title=title)
            )
        return api.ProposeTitleResponse(title=title)

    @with_read_only_errors
    async def GetShares(
        self, request: api.GetSharesRequest, context: Context
    ) -> api.GetSharesResponse:
        """Return the shares of a chat."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        shares = await self._stores.shares.get(chat_id, owner_id=owner.id)
        return api.GetSharesResponse(shares=[share_to_proto(share) for share in shares])

    @with_read_only_errors
    async def SetShares(
        self, request: api.SetSharesRequest, context: Context
    ) -> api.SetSharesResponse:
        """Replace the shares of a chat."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        grantees = _grantees(request, owner)
        stored = await self._stores.shares.get(chat_id, owner_id=owner.id)
        await self._references.require_grantees(
            grantees,
            fields=[f"shares[{index}].{each.kind}_id" for index, each in enumerate(grantees)],
            stored=[share.grantee for share in stored],
        )
        shares = await self._stores.shares.replace(chat_id, owner_id=owner.id, grantees=grantees)
        return api.SetSharesResponse(shares=[share_to_proto(share) for share in shares])

    async def _checked_changes(
        self, chat_id: ChatId, owner: Owner, changes: ChatChanges
    ) -> ChatChanges:
        """Return the changes, after checking that new ids exist.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            UnknownIds: One of the ids does not exist.
            CheckUnavailable: A service that checks them does not answer.
            ModelNotFound: There is no such model.
        """
        checks, references = ReferenceChecks(), self._references
        if fallback := changes.fallback_model_id:
            model_id = await checks.model(
                fallback_id(self._defaults, fallback), "chat.fallback_model_id", fallback
            )
            changes = replace(changes, fallback_model_id=model_id)
        if not (changes.workspace_id or changes.mcp_server_ids or changes.model_id):
            checks.finish()
            return changes
        chat = await self._stores.reading.get(chat_id, Reader(owner.id))
        if chat.owner.id != owner.id:
            raise ChatNotFound(chat_id)
        workspace_id, model_id = changes.workspace_id or "", changes.model_id or ""
        if workspace_id != chat.workspace_id:
            check = references.require_workspace(workspace_id, owner.id, "chat.workspace_id")
            await checks.run(check, None)
        server_ids, stored = changes.mcp_server_ids or (), chat.mcp_server_ids or ()
        check = references.require_servers(
            chat_id, owner, server_ids, "chat.mcp_server_ids", stored=stored
        )
        await checks.run(check, None)
        wanted = ModelChoice("" if model_id == chat.model_id else model_id)
        choice = await checks.model(self._defaults.choice(wanted), "chat.model_id", wanted)
        checks.finish()
        return replace(changes, model_id=choice.model_id) if choice.model_id else changes


def changes_of(chat: chat_pb2.Chat, paths: tuple[str, ...]) -> ChatChanges:
    """Return the changes of the fields in a mask.

    Raises:
        InvalidRequest: The mask is empty, or names a field that cannot be changed.
    """
    if not paths:
        raise InvalidRequest("update_mask", f"names no field; there are {', '.join(CHANGEABLE)}")
    for path in paths:
        if path not in CHANGEABLE:
            raise InvalidRequest(
                "update_mask", f"cannot change {path[:64]}; there are {', '.join(CHANGEABLE)}"
            )
    if "title" in paths and not chat.title:
        raise InvalidRequest("chat.title", "is empty")
    values: dict[str, Any] = {
        "title": chat.title.strip(),
        "labels": dict(chat.labels),
        "pin_order": chat.pin_order,
        "mode": MODE_OF[chat.mode],
        "model_id": chat.model_id.strip(),
        "reasoning_effort": EFFORT_OF[chat.reasoning_effort],
        "workspace_id": fields.optional_uuid(chat.workspace_id, "chat.workspace_id"),
        "mcp_server_ids": fields.mcp_server_ids(chat.mcp_server_ids),
        "fallback_model_id": chat.fallback_model_id.strip(),
    }
    return ChatChanges(**{path: values[path] for path in paths})


def _grantees(request: api.SetSharesRequest, owner: Owner) -> tuple[Grantee, ...]:
    grantees = all_of(
        partial(_grantee, share, f"shares[{index}]", owner)
        for index, share in enumerate(request.shares)
    )
    all_of(
        partial(_check_once, grantee, grantees[:index], f"shares[{index}]")
        for index, grantee in enumerate(grantees)
    )
    return grantees


def _grantee(share: api.Share, field: str, owner: Owner) -> Grantee:
    match share.WhichOneof("grantee"):
        case "user_id":
            grantee = Grantee(GranteeKind.USER, fields.uuid_of(share.user_id, f"{field}.user_id"))
        case _:
            group_id = fields.uuid_of(share.group_id, f"{field}.group_id")
            grantee = Grantee(GranteeKind.GROUP, group_id)
    if grantee == Grantee(GranteeKind.USER, owner.id):
        raise InvalidRequest(f"{field}.user_id", "is the owner")
    return grantee


def _check_once(grantee: Grantee, before: tuple[Grantee, ...], field: str) -> None:
    if grantee in before:
        raise InvalidRequest(field, "is named twice")
