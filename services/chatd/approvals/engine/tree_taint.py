"""Content from outside in the other chats of a tree.

A child receives what its parent knows, and a parent reads what its children report, so content that
entered one chat of a tree may have reached every other.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from chatd.approvals.domain.taint import Taint, Workspace, taint_of
from chatd.chats.domain.chat import Message
from chatd.content.domain.turn_context import TurnContext
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.ids import ChatId
from parley.cache import BoundedCache

CHATS_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class _Known:
    """The taint of a chat at a version of its history."""

    version: int
    workspace: Workspace
    taint: Taint


@dataclass(frozen=True, slots=True)
class TreeTaint:
    """Reads what entered the other chats of a tree; chats that are alone cost nothing.

    Attributes:
        facts: Returns the properties of a chat, cached; the process that starts a child
            publishes that its root changed.
        versions: Returns the chats of a tree by its root, with the versions of their histories.
        history: Returns the live messages of a chat.
    """

    facts: Callable[[ChatId], Awaitable[ChatFacts]]
    versions: Callable[[ChatId], Awaitable[Mapping[ChatId, int]]]
    history: Callable[[ChatId], Awaitable[Sequence[Message]]]
    _known: BoundedCache[ChatId, _Known] = field(default_factory=lambda: BoundedCache(CHATS_MAX))

    async def is_alone(self, context: TurnContext) -> bool:
        """Return whether a chat is the only one of its tree."""
        return not context.is_child and not (await self.facts(context.chat_id)).has_children

    async def of_others(self, context: TurnContext, workspace: Workspace) -> Taint:
        """Return what entered the other chats of a chat's tree."""
        origins: frozenset[str] = frozenset()
        for chat_id, version in (await self.versions(context.root_chat_id)).items():
            if chat_id != context.chat_id:
                origins |= (await self._taint_of(chat_id, version, workspace)).origins
        return Taint(origins)

    async def _taint_of(self, chat_id: ChatId, version: int, workspace: Workspace) -> Taint:
        known = self._known.get(chat_id)
        if known is None or (known.version, known.workspace) != (version, workspace):
            taint = taint_of(await self.history(chat_id), workspace)
            known = _Known(version, workspace, taint)
            self._known.put(chat_id, known)
        return known.taint
