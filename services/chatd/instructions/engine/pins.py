"""Pins the instruction files of chats, once: their prompts stay the same until a refresh.

Pinned files are part of the cached facts of a chat, so a turn of a chat with pinned files needs
neither a statement nor a request to a node for them.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from chatd.content.domain.instructions import PinnedInstructions, digest_of
from chatd.content.domain.parts import ContextFile
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner

logger = logging.getLogger(__name__)


class InstructionFiles(Protocol):
    """The instruction files of workspaces."""

    async def read(self, chat_id: ChatId, owner: Owner) -> tuple[ContextFile, ...]:
        """Return the instruction files of a chat's workspace.

        Raises:
            ChatError: There is no workspace that can be read now.
        """
        ...


class PinnedStore(Protocol):
    """The store of pinned files."""

    async def pin(self, chat_id: ChatId, files: tuple[ContextFile, ...]) -> PinnedInstructions:
        """Pin files in place of those that are pinned."""
        ...


class InstructionPins:
    """Pins instruction files.

    Args:
        files: Reads the files of workspaces.
        store: Stores what is pinned.
        changed: Called with each chat whose pinned files changed, so that its facts are read again.
    """

    def __init__(
        self, files: InstructionFiles, store: PinnedStore, changed: Callable[[ChatId], None]
    ) -> None:
        self._files = files
        self._store = store
        self._changed = changed

    async def for_turn(
        self, chat_id: ChatId, owner: Owner, facts: ChatFacts
    ) -> tuple[ContextFile, ...]:
        """Return the instruction files of a turn; pin them in the first turn with a workspace."""
        if facts.instructions is not None:
            return facts.instructions.files
        if not (facts.workspace_id or facts.has_scratch or facts.is_child):
            return ()
        try:
            return (await self.refresh(chat_id, owner)).files
        except ChatError as unknown:
            # The next turn tries again.
            logger.warning("the instruction files of a chat cannot be read: %s", unknown)
            return ()

    async def refresh(self, chat_id: ChatId, owner: Owner) -> PinnedInstructions:
        """Pin the files that the workspace has now.

        Raises:
            ChatError: There is no workspace that can be read now, or no such chat.
        """
        pinned = await self._store.pin(chat_id, await self._files.read(chat_id, owner))
        self._changed(chat_id)
        return pinned

    async def have_drifted(self, chat_id: ChatId, owner: Owner, pinned: PinnedInstructions) -> bool:
        """Return whether the files of the workspace differ from the pinned ones.

        Raises:
            ChatError: There is no workspace that can be read now.
        """
        return digest_of(await self._files.read(chat_id, owner)) != pinned.digest
