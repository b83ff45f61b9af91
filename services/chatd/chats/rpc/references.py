"""Checks that the ids in a request name something that the caller may use.

Ids that a chat has already are not checked again: what they named may be gone since, and a change
of something else must not fail for that.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from chatd.chats.domain.references import McpServers
from chatd.models.domain.errors import ModelNotFound
from chatd.primitives.domain.errors import CheckUnavailable, UnknownIds, WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.users.domain.grantees import Grantee, Grantees
from chatd.users.rpc.references import require_grantees

T = TypeVar("T")

NO_WORKSPACE = 'names no workspace of yours; list yours, or give null or "" for a scratch one'


class OwnWorkspace(Protocol):
    """A workspace, as far as it matters here."""

    @property
    def is_gone(self) -> bool:
        """Whether it was deleted."""
        ...


class OwnWorkspaces(Protocol):
    """The workspaces of users."""

    async def own(self, workspace_id: str, owner_id: OwnerId) -> OwnWorkspace:
        """Return a workspace of an owner.

        Raises:
            WorkspaceNotFound: there is none that is theirs.
        """
        ...


class References:
    """Refuses ids that name nothing.

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
        """Let only a workspace pass that the owner has; none at all passes.

        Raises:
            UnknownIds: it is absent, somebody else's, or deleted.
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
        """Let only MCP servers pass that the chat has or may choose.

        Raises:
            UnknownIds: one of them is absent or switched off.
            CheckUnavailable: no mcpgateway answers.
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
        """Let only users and groups pass that exist or are stored already.

        Raises:
            UnknownIds: one of them does not exist.
            CheckUnavailable: no gateway answers.
        """
        await require_grantees(self._grantees, grantees, fields=fields, stored=stored)


async def all_known(
    *checks: Callable[[], Awaitable[None]], model: Callable[[], Awaitable[T]], model_field: str
) -> T:
    """Make all checks of ids before refusing; return what the check of the model returns.

    Args:
        checks: Each raises UnknownIds for ids that name nothing.
        model: Raises ModelNotFound for a model that is not known.
        model_field: Where the model is in the request.

    Raises:
        UnknownIds: some ids name nothing; it has the problems of all checks.
        ModelNotFound: only the model is not known.
        CheckUnavailable: a service that knows some of them does not answer, and no other is wrong.
    """
    refused: list[UnknownIds] = []
    unavailable: CheckUnavailable | None = None
    for check in checks:
        try:
            await check()
        except UnknownIds as refusal:
            refused.append(refusal)
        except CheckUnavailable as refusal:
            unavailable = refusal
    try:
        found = await model()
    except ModelNotFound:
        if not refused:
            raise
        unknown = UnknownIds("model", {model_field: NO_MODEL})
        raise _together([*refused, unknown]) from None
    if refused:
        raise _together(refused)
    if unavailable is not None:
        raise unavailable
    return found


def _together(refused: Sequence[UnknownIds]) -> UnknownIds:
    resources = " or ".join(refusal.resource for refusal in refused)
    return UnknownIds(resources, {k: v for each in refused for k, v in each.problems.items()})


NO_MODEL = "names no model that is switched on; choose one of the list of models"
