"""Checks that the ids in a request name something that the caller may use.

Ids that a chat has already are not checked again: what they named may be gone since, and a change
of something else must not fail for that.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol, TypeVar

from chatd.domain.chat import ChatId, Owner, OwnerId
from chatd.domain.errors import (
    ChatNotFound,
    CheckUnavailable,
    ModelNotFound,
    UnknownIds,
    WorkspaceNotFound,
)
from chatd.domain.references import Grantees, McpServers
from chatd.domain.views import Grantee, GranteeKind
from chatd.domain.workspaces.secrets import Secret, SecretNotFound
from chatd.domain.workspaces.workspace import Workspace

NO_WORKSPACE = 'names no workspace of yours; list yours, or give null or "" for a scratch one'
NO_MODEL = "names no model that is switched on; choose one of the list of models"

T = TypeVar("T")


class OwnWorkspaces(Protocol):
    """The workspaces of users."""

    async def own(self, workspace_id: str, owner_id: OwnerId) -> Workspace:
        """Return a workspace of an owner.

        Raises:
            WorkspaceNotFound: there is none that is theirs.
        """
        ...


class ChatOwners(Protocol):
    """Whose chats there are."""

    async def require(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Let only the owner pass.

        Raises:
            ChatNotFound: there is no such chat, or it is somebody else's.
        """
        ...


class NamedSecrets(Protocol):
    """The secrets that users may grant."""

    async def named(self, owner_id: str, names: Collection[str]) -> tuple[Secret, ...]:
        """Return the secrets that a user means by these names."""
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


class WorkspaceReferences:
    """Refuses ids and names in requests about workspaces and templates that name nothing.

    Args:
        owners: Whose chats there are.
        secrets: The secrets of users.
        grantees: The users and groups of the installation.
    """

    def __init__(self, owners: ChatOwners, secrets: NamedSecrets, grantees: Grantees) -> None:
        self._owners = owners
        self._secrets = secrets
        self._grantees = grantees

    async def require_chat(self, chat_id: str, owner_id: OwnerId) -> None:
        """Let only a chat of the owner pass; none at all passes.

        Raises:
            UnknownIds: it is absent or somebody else's.
        """
        try:
            if chat_id:
                await self._owners.require(ChatId(chat_id), owner_id)
        except ChatNotFound:
            raise UnknownIds("chat", {"chat_id": "names no chat of yours"}) from None

    async def require_secrets(self, names: Sequence[str], owner_id: OwnerId) -> None:
        """Let only secrets pass that the owner may use.

        Raises:
            SecretNotFound: there is none of such a name.
        """
        if names:
            found = await self._secrets.named(owner_id, names)
            if missing := set(names) - {secret.name for secret in found}:
                raise SecretNotFound(min(missing))

    async def require_groups(self, group_ids: Sequence[str], stored: Sequence[str] = ()) -> None:
        """Let only groups pass, as those that may use a template, that exist or are stored.

        Raises:
            UnknownIds: one of them does not exist.
            CheckUnavailable: no gateway answers.
        """
        await require_grantees(
            self._grantees,
            [Grantee(GranteeKind.GROUP, each) for each in group_ids],
            fields=[f"template.group_ids[{index}]" for index in range(len(group_ids))],
            stored=[Grantee(GranteeKind.GROUP, each) for each in stored],
        )


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


async def require_grantees(
    known: Grantees,
    grantees: Sequence[Grantee],
    *,
    fields: Sequence[str],
    stored: Sequence[Grantee] = (),
) -> None:
    """Let only users and groups pass that exist or are stored already.

    Args:
        known: Tells which exist.
        grantees: The users and groups.
        fields: Where each of them is in the request.
        stored: Those that are not checked again.

    Raises:
        UnknownIds: one of them does not exist.
        CheckUnavailable: no gateway answers.
    """
    new = [each for each in grantees if each not in stored]
    unknown = await known.unknown(new) if new else frozenset()
    if unknown:
        problems = {
            field: f"names no {each.kind}"
            for each, field in zip(grantees, fields, strict=True)
            if each in unknown
        }
        resource = " or ".join(sorted({each.kind for each in unknown}))
        raise UnknownIds(resource, problems)
