"""Pins the instruction files of chats, once: their prompts stay the same until a refresh.

Pinned files are part of the cached facts of a chat, so a turn of a chat with pinned files needs
neither a statement nor a request to a node for them.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from chatd.content.domain.instructions import InstructionSet, PinnedInstructions, digest_of
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner

logger = logging.getLogger(__name__)


class InstructionFiles(Protocol):
    """The instruction files of workspaces."""

    async def read(self, chat_id: ChatId, owner: Owner) -> InstructionSet:
        """Return the instruction files and skills of a chat's workspace.

        Raises:
            ChatError: There is no workspace that can be read now.
        """
        ...


class PinnedStore(Protocol):
    """The store of pinned files."""

    async def pin(self, chat_id: ChatId, found: InstructionSet) -> PinnedInstructions:
        """Pin files and skills in place of those that are pinned."""
        ...

    async def set_drifted(self, chat_id: ChatId, digest: str, *, drifted: bool) -> bool:
        """Store whether the files of the workspace differ; return whether that is new.

        Nothing is stored if others than those with the digest are pinned by now.
        """
        ...


class InstructionPins:
    """Pins instruction files.

    Args:
        files: Reads the files of workspaces.
        store: Stores what is pinned.
        changed: Called with each chat whose pinned files changed, so that its facts are read again.
        publish: Called with each chat whose files began or ceased to differ from the pinned ones.
    """

    def __init__(
        self,
        files: InstructionFiles,
        store: PinnedStore,
        changed: Callable[[ChatId], None],
        publish: Callable[[ChatId], None] = lambda chat_id: None,
    ) -> None:
        self._files = files
        self._store = store
        self._changed = changed
        self._publish = publish

    async def for_turn(self, chat_id: ChatId, owner: Owner, facts: ChatFacts) -> InstructionSet:
        """Return the instructions of a turn; pin them in the first turn with a workspace."""
        if facts.instructions is not None:
            return facts.instructions.found
        if not (facts.workspace_id or facts.has_scratch or facts.is_child):
            return InstructionSet()
        try:
            return (await self.refresh(chat_id, owner)).found
        except ChatError as unknown:
            # The next turn tries again.
            logger.warning("the instruction files of a chat cannot be read: %s", unknown)
            return InstructionSet()

    async def refresh(self, chat_id: ChatId, owner: Owner) -> PinnedInstructions:
        """Pin the files that the workspace has now.

        Raises:
            ChatError: There is no workspace that can be read now, or no such chat.
        """
        pinned = await self._store.pin(chat_id, await self._files.read(chat_id, owner))
        self._changed(chat_id)
        return pinned

    async def renew(self, chat_id: ChatId, owner: Owner) -> None:
        """Pin the files that the workspace has now, on demand; they do not differ afterwards.

        Raises:
            ChatError: There is no workspace that can be read now, or no such chat.
        """
        pinned = await self.refresh(chat_id, owner)
        await self._tell(chat_id, pinned.digest, drifted=False)

    async def compare(self, chat_id: ChatId, owner: Owner, facts: ChatFacts) -> bool:
        """Return whether the files of the workspace differ from the pinned ones.

        If that is new, it is stored and published; otherwise there is no statement.

        Raises:
            ChatError: There is no workspace that can be read now.
        """
        if facts.instructions is None:
            return False
        digest = facts.instructions.digest
        drifted = digest_of(await self._files.read(chat_id, owner)) != digest
        if drifted != facts.instructions_drifted:
            await self._tell(chat_id, digest, drifted=drifted)
        return drifted

    async def _tell(self, chat_id: ChatId, digest: str, *, drifted: bool) -> None:
        if await self._store.set_drifted(chat_id, digest, drifted=drifted):
            self._changed(chat_id)
            self._publish(chat_id)
