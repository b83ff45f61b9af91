"""Content from outside in the other chats of a tree.

A child receives what its parent knows, and a parent reads what its children report, so content that
entered one chat of a tree may have reached every other. Its chats work in one workspace, or in
copies of it, so a file that one of them wrote to fetch may be run by every other.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from chatd.approvals.domain.taint import Taint, Workspace, fetching_files_of, taint_of
from chatd.chats.domain.chat import Message
from chatd.content.domain.turn_context import TurnContext
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.ids import NO_MESSAGE, ChatId, MessageId
from parley.cache import BoundedCache

CHATS_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a chat at a version of its history.

    Attributes:
        version: The version.
        workspace: The workspace that it was judged with.
        files: The files of the tree that fetch, by which its commands were judged.
        written: Those that it wrote itself.
        taint: What entered it.
    """

    version: int
    workspace: Workspace
    files: frozenset[str]
    written: frozenset[str]
    taint: Taint


@dataclass(frozen=True, slots=True)
class _Searched:
    """The files that fetch which a chat wrote up to a message."""

    last_id: MessageId
    names: frozenset[str]


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
    _searched: BoundedCache[ChatId, _Searched] = field(
        default_factory=lambda: BoundedCache(CHATS_MAX)
    )

    async def is_alone(self, context: TurnContext) -> bool:
        """Return whether a chat is the only one of its tree."""
        return not context.is_child and not (await self.facts(context.chat_id)).has_children

    async def of_tree(
        self, context: TurnContext, history: Sequence[Message], workspace: Workspace
    ) -> Taint:
        """Return what entered a chat with this history, and the other chats of its tree."""
        others = dict(await self.versions(context.root_chat_id))
        others.pop(context.chat_id, None)
        files = self._fetching_files(context.chat_id, history)
        for chat_id, version in others.items():
            files |= await self._files_written_by(chat_id, version, workspace, files)
        origins = taint_of(history, workspace, files).origins
        for chat_id, version in others.items():
            origins |= (await self._taint_of(chat_id, version, workspace, files)).origins
        return Taint(origins)

    async def _files_written_by(
        self, chat_id: ChatId, version: int, workspace: Workspace, files: frozenset[str]
    ) -> frozenset[str]:
        known = self._known.get(chat_id)
        if known is None or (known.version, known.workspace) != (version, workspace):
            known = await self._read(chat_id, version, workspace, files)
        return known.written

    async def _taint_of(
        self, chat_id: ChatId, version: int, workspace: Workspace, files: frozenset[str]
    ) -> Taint:
        known = self._known.get(chat_id)
        asked = (version, workspace, files)
        if known is None or (known.version, known.workspace, known.files) != asked:
            known = await self._read(chat_id, version, workspace, files)
        return known.taint

    async def _read(
        self, chat_id: ChatId, version: int, workspace: Workspace, files: frozenset[str]
    ) -> _Known:
        """Read a chat; its own files count with those of the others that are known so far."""
        history = await self.history(chat_id)
        written = self._fetching_files(chat_id, history)
        files |= written
        known = _Known(version, workspace, files, written, taint_of(history, workspace, files))
        self._known.put(chat_id, known)
        return known

    def _fetching_files(self, chat_id: ChatId, history: Sequence[Message]) -> frozenset[str]:
        """Return the files that fetch which a chat wrote; only newer messages are searched."""
        before = self._searched.get(chat_id) or _Searched(NO_MESSAGE, frozenset())
        newer = [message for message in history if message.id > before.last_id]
        if not newer:
            return before.names
        names = before.names | fetching_files_of(newer)
        self._searched.put(chat_id, _Searched(max(each.id for each in newer), names))
        return names
