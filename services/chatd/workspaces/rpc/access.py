"""Access checks of workspaces: reading and changing."""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from chatd.chats.domain.errors import ChatReadOnly
from chatd.chats.store.reading import Reading
from chatd.primitives.domain.errors import ChatNotFound, WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.primitives.rpc import fields
from chatd.users.clients.existence import user_of
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import caller_as_owner, caller_as_reader
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.workspace.v1 import sandbox_pb2, workspace_pb2
from parley.identity import User


@dataclass(frozen=True, slots=True)
class AuthorizedAccess:
    """The authorised access of a caller to a workspace.

    Attributes:
        workspace_id: The workspace.
        named: The id in the request: that of the workspace, or that of a chat.
        epoch: Number of its placement.
        is_there: Whether it was created; a chat's scratch workspace is created at its first change.
        is_of_chat: Whether the request named it by the id of a chat.
    """

    workspace_id: str
    user: User
    named: str
    epoch: int = 0
    is_there: bool = True
    is_of_chat: bool = True

    @property
    def chat_id(self) -> str:
        """The chat that the request named; empty if it named a workspace."""
        return self.named if self.is_of_chat else ""

    def context(self, chat_id: str = "") -> workspace_pb2.WorkspaceContext:
        """Return the context for a node; without a chat it is a user's call: it sees all chats."""
        return workspace_pb2.WorkspaceContext(
            workspace_id=self.workspace_id,
            epoch=self.epoch,
            chat_id=chat_id,
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )

    def request_id(self, given: str) -> str:
        """Return the request id for a node's journal.

        A node has one journal for all users, and each of them may choose the same ids.
        """
        whole = "\n".join((self.user.id, self.workspace_id, given))
        return f"person-{hashlib.sha256(whole.encode()).hexdigest()}"


class WorkspaceLocator(Protocol):
    """Locates the workspaces of chats and of owners."""

    async def locate(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return the location of a chat's workspace; creates nothing."""
        ...

    async def ensure_scratch(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        """Return the current location of a chat; one without a workspace gets a scratch one."""
        ...

    async def locate_own(self, workspace_id: str, owner_id: OwnerId) -> WorkspaceLocation:
        """Return the location of a workspace of an owner.

        Raises:
            WorkspaceNotFound: the owner has no such workspace.
            WorkspaceNotReady: it has no node now.
        """
        ...


class WorkspaceAccess:
    """Authorises readers of a chat for its workspace, and owners for their workspaces.

    A workspace is named by its own id, or by the id of a chat that uses it.

    Args:
        reading: Checks who may read a chat.
        groups: The groups of users.
        check: Raises UserSuspended for suspended users.
        locator: Locates workspaces; without it they have the ids of their chats.
        placed: Called with the location of each authorised workspace.
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
        """Authorise the owner and the users with whom the chat is shared.

        Raises:
            WorkspaceNotFound: The caller is none of them, or there is no such workspace.
        """
        return await self._authorize(workspace_id, await caller_as_reader(self._groups))

    async def for_changing(self, workspace_id: str) -> AuthorizedAccess:
        """Authorise the owner.

        Raises:
            WorkspaceNotFound: There is no such workspace, or the caller may not see it.
            ChatReadOnly: It belongs to a chat that is shared with the caller.
            UserSuspended: The caller is suspended or deleted.
        """
        owner = caller_as_owner()
        self._check(owner.id)
        async with self.refusing_readers():
            return await self._authorize(workspace_id, Reader(owner.id), is_owner_only=True)

    @asynccontextmanager
    async def refusing_readers(self) -> AsyncIterator[None]:
        """Raise ChatReadOnly in place of WorkspaceNotFound if the caller may read its chat."""
        try:
            yield
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
            location = await self._locator.locate_own(found_id, reader.id)
            return replace(self._at(location, owner, found_id), is_of_chat=False)
        if is_owner_only and chat.owner.id != reader.id:
            raise WorkspaceNotFound(found_id)
        if self._locator is None:
            return AuthorizedAccess(found_id, user_of(owner), found_id)
        location = (
            await self._locator.ensure_scratch(ChatId(found_id), chat.owner)
            if is_owner_only
            else await self._locator.locate(ChatId(found_id))
        )
        return self._at(location, owner, found_id)

    def _at(self, location: WorkspaceLocation, owner: Owner, named: str) -> AuthorizedAccess:
        self._placed(location)
        is_there = location.epoch > 0 and location.is_made
        return AuthorizedAccess(
            location.workspace_id, user_of(owner), named, location.epoch, is_there
        )
