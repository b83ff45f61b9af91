"""Checks that ids in requests about workspaces name resources that the caller may use."""

from collections.abc import Collection, Sequence
from typing import Protocol

from chatd.primitives.domain.errors import ChatNotFound, UnknownIds
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.users.domain.grantees import Grantee, GranteeKind, Grantees
from chatd.users.rpc.callers import require_grantees
from chatd.workspaces.domain.secrets import Secret, SecretNotFound


class ChatOwners(Protocol):
    """Checks the owners of chats."""

    async def require(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Require that a user owns a chat.

        Raises:
            ChatNotFound: there is no such chat, or it belongs to another user.
        """
        ...


class NamedSecrets(Protocol):
    """The secrets that users may grant."""

    async def named(self, owner_id: str, names: Collection[str]) -> tuple[Secret, ...]:
        """Return the secrets with these names that a user may use."""
        ...


class WorkspaceReferences:
    """Rejects ids and names in requests about workspaces and templates that do not exist.

    Args:
        owners: Checks the owners of chats.
        secrets: The secrets of users.
        grantees: The users and groups of the installation.
    """

    def __init__(self, owners: ChatOwners, secrets: NamedSecrets, grantees: Grantees) -> None:
        self._owners = owners
        self._secrets = secrets
        self._grantees = grantees

    async def require_chat(self, chat_id: str, owner_id: OwnerId) -> None:
        """Require that a chat belongs to the owner; an empty id is accepted.

        Raises:
            UnknownIds: it does not exist or belongs to another user.
        """
        try:
            if chat_id:
                await self._owners.require(ChatId(chat_id), owner_id)
        except ChatNotFound:
            raise UnknownIds("chat", {"chat_id": "names no chat of yours"}) from None

    async def require_secrets(self, names: Sequence[str], owner_id: OwnerId) -> None:
        """Require that the owner may use the secrets.

        Raises:
            SecretNotFound: there is none with such a name.
        """
        if names:
            found = await self._secrets.named(owner_id, names)
            if missing := set(names) - {secret.name for secret in found}:
                raise SecretNotFound(min(missing))

    async def require_groups(self, group_ids: Sequence[str], stored: Sequence[str] = ()) -> None:
        """Require that the groups of a template exist or are already stored.

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
