"""Who may look into a workspace, and who may change something in it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from chatd.clients.users import user_of
from chatd.domain.chat import ChatId, OwnerId
from chatd.domain.errors import ChatNotFound, WorkspaceNotFound
from chatd.domain.groups import Groups
from chatd.domain.views import Reader
from chatd.rpc import fields
from chatd.rpc.callers import caller_as_owner, caller_as_reader
from chatd.store.reading import Reading
from parley.api.workspace.v1 import sandbox_pb2, workspace_pb2
from parley.identity import User


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody who may do in a workspace what they asked for."""

    workspace_id: str
    user: User

    def context(self, chat_id: str = "") -> workspace_pb2.WorkspaceContext:
        """Return what a node is told; without a chat the call is a person's, who sees all."""
        return workspace_pb2.WorkspaceContext(
            workspace_id=self.workspace_id,
            chat_id=chat_id,
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )

    def request_id(self, given: str) -> str:
        """Return the id under which a node journals a request of this visitor.

        A node has one journal for all users, and each of them may choose the same ids.
        """
        whole = "\n".join((self.user.id, self.workspace_id, fields.request_id_of(given)))
        return f"person-{hashlib.sha256(whole.encode()).hexdigest()}"


class Door:
    """Lets in whom the chat of a workspace lets in; a workspace has the id of its chat.

    Args:
        reading: Tells who may read a chat.
        groups: Who belongs to which groups.
        check: Refuses users who were locked out.
    """

    def __init__(
        self, reading: Reading, groups: Groups, check: Callable[[OwnerId], None] = lambda _: None
    ) -> None:
        self._reading = reading
        self._groups = groups
        self._check = check

    async def for_reading(self, workspace_id: str) -> Visit:
        """Let in the owner and those with whom the chat is shared.

        Raises:
            WorkspaceNotFound: The caller is none of them, or there is none.
        """
        return await self._visit(workspace_id, await caller_as_reader(self._groups))

    async def for_changing(self, workspace_id: str) -> Visit:
        """Let in the owner.

        Raises:
            WorkspaceNotFound: The caller is not the owner, or there is none.
            UserBarred: They were locked out or deleted.
        """
        owner = caller_as_owner()
        self._check(owner.id)
        return await self._visit(workspace_id, Reader(owner.id), is_owner_only=True)

    async def _visit(
        self, workspace_id: str, reader: Reader, *, is_owner_only: bool = False
    ) -> Visit:
        found_id = fields.uuid_of(workspace_id, "workspace_id")
        try:
            chat = await self._reading.get(ChatId(found_id), reader)
        except ChatNotFound:
            raise WorkspaceNotFound(found_id) from None
        if is_owner_only and chat.owner.id != reader.id:
            raise WorkspaceNotFound(found_id)
        return Visit(found_id, user_of(caller_as_owner()))
