"""Who may look into a workspace, and who may change something in it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from chatd.chats.domain.errors import ChatReadOnly
from chatd.chats.store.reading import Reading
from chatd.primitives.domain.errors import ChatNotFound, WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.primitives.rpc import fields
from chatd.users.clients.users import user_of
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import caller_as_owner, caller_as_reader
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.workspace.v1 import sandbox_pb2, workspace_pb2
from parley.identity import User


@dataclass(frozen=True, slots=True)
class AuthorizedAccess:
    """Somebody who may do in a workspace what they asked for.

    Attributes:
        workspace_id: The workspace.
        named: The id by which they asked for it: its own, or that of a chat.
        epoch: Number of its placement.
        is_there: Whether it was made; a chat's own is made when something is done in it.
        is_of_chat: Whether they asked for it by the id of a chat.
    """

    workspace_id: str
    user: User
    named: str
    epoch: int = 0
    is_there: bool = True
    is_of_chat: bool = True

    def context(self, chat_id: str = "") -> workspace_pb2.WorkspaceContext:
        """Return what a node is told; without a chat the call is a person's, who sees all."""
        return workspace_pb2.WorkspaceContext(
            workspace_id=self.workspace_id,
            epoch=self.epoch,
            chat_id=chat_id,
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )

    def request_id(self, given: str) -> str:
        """Return the id under which a node journals a request of this visitor.

        A node has one journal for all users, and each of them may choose the same ids.
        """
        whole = "\n".join((self.user.id, self.workspace_id, fields.request_id_of(given)))
        return f"person-{hashlib.sha256(whole.encode()).hexdigest()}"


class WorkspaceLocator(Protocol):
    """Where chats work, and where workspaces are."""

    async def seen(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return where a chat works; makes nothing."""
        ...

    async def made(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        """Return where a chat works now; one without a workspace gets a scratch one."""
        ...

    async def own(self, workspace_id: str, owner_id: OwnerId) -> WorkspaceLocation:
        """Return where a workspace of an owner is.

        Raises:
            WorkspaceNotFound: there is none that is theirs.
            WorkspaceNotReady: it is nowhere now.
        """
        ...


class WorkspaceAccess:
    """Lets in whom a chat lets in where it works, and owners into their workspaces.

    A workspace is named by its own id, or by the id of a chat for the one that the chat works in.

    Args:
        reading: Tells who may read a chat.
        groups: Who belongs to which groups.
        check: Refuses users who were locked out.
        locator: Tells where workspaces are; without it they have the ids of their chats.
        placed: Is told where the workspace of a visit is.
    """

    def __init__(
        self,
        reading: Reading,
        groups: Groups,
        check: Callable[[OwnerId], None] = lambda _: None,
        *,
        locator: WorkspaceLocator | None = None,
        placed: Callable[[WorkspaceLocation], None] = lambda _: None,
    ) -> None:
        self._reading = reading
        self._groups = groups
        self._check = check
        self._locator = locator
        self._placed = placed

    async def for_reading(self, workspace_id: str) -> AuthorizedAccess:
        """Let in the owner and those with whom the chat is shared.

        Raises:
            WorkspaceNotFound: The caller is none of them, or there is none.
        """
        return await self._authorize(workspace_id, await caller_as_reader(self._groups))

    async def for_changing(self, workspace_id: str) -> AuthorizedAccess:
        """Let in the owner.

        Raises:
            WorkspaceNotFound: There is none, or the caller may not know of it.
            ChatReadOnly: It is that of a chat which is shared with the caller.
            UserSuspended: They were locked out or deleted.
        """
        owner = caller_as_owner()
        self._check(owner.id)
        try:
            return await self._authorize(workspace_id, Reader(owner.id), is_owner_only=True)
        except WorkspaceNotFound as missing:
            reader = await caller_as_reader(self._groups)
            if await self._is_shared_with(reader, ChatId(missing.workspace_id)):
                raise ChatReadOnly(missing.workspace_id) from None
            raise

    async def _is_shared_with(self, reader: Reader, chat_id: ChatId) -> bool:
        try:
            chat = await self._reading.get(chat_id, reader)
        except ChatNotFound:
            return False
        return chat.owner.id != reader.id

    async def _authorize(
        self, workspace_id: str, reader: Reader, *, is_owner_only: bool = False
    ) -> AuthorizedAccess:
        found_id = fields.uuid_of(workspace_id, "workspace_id")
        owner = caller_as_owner()
        try:
            chat = await self._reading.get(ChatId(found_id), reader)
        except ChatNotFound:
            if self._locator is None:
                raise WorkspaceNotFound(found_id) from None
            location = await self._locator.own(found_id, reader.id)
            return replace(self._at(location, owner, found_id), is_of_chat=False)
        if is_owner_only and chat.owner.id != reader.id:
            raise WorkspaceNotFound(found_id)
        if self._locator is None:
            return AuthorizedAccess(found_id, user_of(owner), found_id)
        location = (
            await self._locator.made(ChatId(found_id), chat.owner)
            if is_owner_only
            else await self._locator.seen(ChatId(found_id))
        )
        return self._at(location, owner, found_id)

    def _at(self, location: WorkspaceLocation, owner: Owner, named: str) -> AuthorizedAccess:
        self._placed(location)
        is_there = location.epoch > 0 and location.is_made
        return AuthorizedAccess(
            location.workspace_id, user_of(owner), named, location.epoch, is_there
        )
