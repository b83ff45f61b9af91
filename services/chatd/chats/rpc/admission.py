"""Admits requests within spend limits, and stores the groups that limits depend on."""

from collections.abc import Callable
from typing import Protocol

from chatd.chats.store.idempotency_keys import Keys
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.primitives.domain.requests import ClientKey
from chatd.spend.domain.limits import UsageLimitReached
from chatd.users.domain.groups import Groups, GroupsUnavailable


class SpendAdmission(Protocol):
    """Spend limits of users."""

    async def admit(self, owner_id: OwnerId, group_ids: tuple[str, ...]) -> None:
        """Check that a user may spend more.

        Raises:
            UsageLimitReached: The user has reached a limit.
        """
        ...

    async def remember_groups(self, chat_id: ChatId, group_ids: tuple[str, ...]) -> None:
        """Store the groups of an admitted chat's owner, if a limit depends on them."""
        ...

    async def depend_on_groups(self) -> bool:
        """Return whether any limit depends on groups."""
        ...


class SuspensionCheckedSpending:
    """Rejects suspended users, and applies spend limits to the others."""

    def __init__(self, spending: SpendAdmission, check: Callable[[OwnerId], None]) -> None:
        self._spending = spending
        self._check = check

    async def admit(self, owner_id: OwnerId, group_ids: tuple[str, ...]) -> None:
        """Check that a user is not suspended and may spend more.

        Raises:
            UserSuspended: The user was suspended or deleted.
            UsageLimitReached: The user has reached a limit.
        """
        self._check(owner_id)
        await self._spending.admit(owner_id, group_ids)

    async def remember_groups(self, chat_id: ChatId, group_ids: tuple[str, ...]) -> None:
        """Store the groups of an admitted chat's owner, if a limit depends on them."""
        await self._spending.remember_groups(chat_id, group_ids)

    async def depend_on_groups(self) -> bool:
        """Return whether any limit depends on groups."""
        return await self._spending.depend_on_groups()


class Admission:
    """Admits requests that will spend; a request that was admitted before is admitted again.

    Groups are queried only while some limit depends on them, so that no other request waits for, or
    fails with, the service that stores them.
    """

    def __init__(self, spending: SpendAdmission, groups: Groups, keys: Keys) -> None:
        self._spending = spending
        self._groups = groups
        self._keys = keys

    async def to_new_chat(self, chat_id: ChatId, owner: Owner, key: ClientKey) -> tuple[str, ...]:
        """Admit the first message of a chat; return the groups to store with it.

        Raises:
            UsageLimitReached: Its owner has reached a limit.
            GroupsUnavailable: A limit depends on the owner's groups, which cannot be queried.
            RequestIdReused: The request id was used for another body.
        """
        group_ids = await self._groups_of(owner, chat_id, key)
        if group_ids is None:
            return ()
        await self._admit(chat_id, owner, key, group_ids)
        return group_ids

    async def to_chat(self, chat_id: ChatId, owner: Owner, key: ClientKey) -> None:
        """Admit a request that continues a chat of this owner.

        Raises:
            UsageLimitReached: The owner has reached a limit.
            GroupsUnavailable: A limit depends on the owner's groups, which cannot be queried.
            RequestIdReused: The request id was used for another body.
        """
        group_ids = await self._groups_of(owner, chat_id, key)
        if group_ids is None:
            return
        await self._admit(chat_id, owner, key, group_ids)
        await self._spending.remember_groups(chat_id, group_ids)

    async def _groups_of(
        self, owner: Owner, chat_id: ChatId, key: ClientKey
    ) -> tuple[str, ...] | None:
        """Return the groups that a limit depends on; None for a repeat without them."""
        if not await self._spending.depend_on_groups():
            return ()
        try:
            return await self._groups.of(owner.id)
        except GroupsUnavailable as refusal:
            await self._keys.require_used(chat_id, key, refusal)
            return None

    async def _admit(
        self, chat_id: ChatId, owner: Owner, key: ClientKey, group_ids: tuple[str, ...]
    ) -> None:
        try:
            await self._spending.admit(owner.id, group_ids)
        except UsageLimitReached as refusal:
            await self._keys.require_used(chat_id, key, refusal)
