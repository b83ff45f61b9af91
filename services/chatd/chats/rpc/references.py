"""Checks that the ids in a request exist and may be used by the caller.

Ids that a chat has already are not checked again: their objects may have been deleted since, and a
change of another field must not fail for that.
"""

from collections.abc import Sequence
from typing import Protocol

from chatd.chats.domain.references import McpServers
from chatd.primitives.domain.errors import UnknownIds, WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.users.domain.grantees import Grantee, Grantees
from chatd.users.rpc.callers import require_grantees

NO_WORKSPACE = 'names no workspace of yours; list yours, or give null or "" for a scratch one'


class OwnWorkspace(Protocol):
    """The part of a workspace that is used here."""

    @property
    def is_gone(self) -> bool:
        """Whether it was deleted."""
        ...


class OwnWorkspaces(Protocol):
    """The workspaces of users."""

    async def own(self, workspace_id: str, owner_id: OwnerId) -> OwnWorkspace:
        """Return a workspace of an owner.

        Raises:
            WorkspaceNotFound: The owner has no such workspace.
        """
        ...


class References:
    """Rejects ids that do not exist.

    Args:
        workspaces: The workspaces of users.
        servers: The MCP servers of the installation.
        grantees: The users and groups of the installation.
    """

    def __init__(self, workspaces: OwnWorkspaces, servers: McpServers, grantees: Grantees) -> None:
        self._workspaces = workspaces
        self._servers = servers
        self._grantees = grantees

    async def require_workspace(self, workspace_id: str, owner_id: OwnerId, field: str) -> None:
        """Check that the owner has a workspace; an empty id is accepted.

        Raises:
            UnknownIds: It does not exist, belongs to another user, or is deleted.
        """
        if not workspace_id:
            return
        try:
            workspace = await self._workspaces.own(workspace_id, owner_id)
        except WorkspaceNotFound:
            raise UnknownIds("workspace", {field: NO_WORKSPACE}) from None
        if workspace.is_gone:
            raise UnknownIds("workspace", {field: NO_WORKSPACE})

    async def require_servers(
        self,
        chat_id: ChatId,
        owner: Owner,
        server_ids: Sequence[str],
        field: str,
        *,
        stored: Sequence[str] = (),
    ) -> None:
        """Check that the chat has or may choose the MCP servers.

        Raises:
            UnknownIds: One of them does not exist or is disabled.
            CheckUnavailable: No mcpgateway answers.
        """
        new = [each for each in server_ids if each not in stored]
        if not new:
            return
        refused = await self._servers.refused(chat_id, owner, server_ids, stored)
        if refused:
            problems = {
                f"{field}[{index}]": refused[each]
                for index, each in enumerate(server_ids)
                if each in refused
            }
            raise UnknownIds("MCP server", problems)

    async def require_grantees(
        self, grantees: Sequence[Grantee], *, fields: Sequence[str], stored: Sequence[Grantee] = ()
    ) -> None:
        """Check that users and groups exist or are stored already.

        Raises:
            UnknownIds: One of them does not exist.
            CheckUnavailable: No gateway answers.
        """
        await require_grantees(self._grantees, grantees, fields=fields, stored=stored)
