"""Checks that the ids in a request about workspaces name something that the caller may use."""

from collections.abc import Collection, Sequence
from typing import Protocol

from chatd.primitives.domain.errors import ChatNotFound, UnknownIds
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.users.domain.grantees import Grantee, GranteeKind, Grantees
from chatd.users.rpc.references import require_grantees
from chatd.workspaces.domain.secrets import Secret, SecretNotFound


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
