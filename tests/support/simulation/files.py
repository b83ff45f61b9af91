"""Files of chats as a node keeps them: what calls changed, and restores that are made once."""

from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from chatd.chats.domain.chat import Revert, RevertKind
from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.tools import ExecutorUnreachable
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    OwnerClaim,
    RevertId,
)
from chatd.turns.domain.ports import RestoreFailed
from parley.clock import Clock

RETURN_S = 10.0
AGAIN_S = 0.25
REPORT = b"restored"


class UnknownRestore(Exception):
    """A restore is to be undone that the node does not know."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one call changed, and the message that it is in."""

    execution_id: ExecutionId
    message_id: MessageId


class SimulatedFiles:
    """What the calls of each chat changed, in order, without what was restored.

    Attributes:
        restored: All restores that were ever made, also those that a lost disk forgot.
    """

    def __init__(self) -> None:
        self.restored: set[RevertId] = set()
        self._changes: dict[ChatId, list[Change]] = defaultdict(list)
        self._taken_back: dict[RevertId, list[Change]] = {}

    def change(self, chat_id: ChatId, change: Change) -> None:
        """Let a call change something."""
        self._changes[chat_id].append(change)

    def restore(self, chat_id: ChatId, revert: Revert) -> bytes:
        """Take changes back, or make them again; a repetition does nothing.

        Raises:
            UnknownRestore: What is to be undone is not known.
        """
        if revert.revert_id in self._taken_back:
            return REPORT
        changes = self._changes[chat_id]
        taken: list[Change] = []
        if revert.kind is RevertKind.UNDO:
            if revert.undone_id not in self._taken_back:
                raise UnknownRestore
            changes += self._taken_back[revert.undone_id]
        else:
            taken = [each for each in changes if each.message_id >= revert.message_id]
            self._changes[chat_id] = [each for each in changes if each not in taken]
        self._taken_back[revert.revert_id] = taken
        self.restored.add(revert.revert_id)
        return REPORT

    def problem_of(self, chat_id: ChatId, revert: Revert) -> str | None:
        """Return why the history of a revert may not be committed yet; None if it may."""
        if not revert.restores_files:
            return None
        if revert.revert_id not in self.restored:
            return "a revert was committed before its files were restored"
        later = [each for each in self._changes[chat_id] if each.message_id >= revert.message_id]
        if later and revert.kind is not RevertKind.UNDO:
            return "a revert was committed and its files have changed since"
        return None

    def forget(self) -> None:
        """Lose everything, as a node does whose disk is gone."""
        self._changes.clear()
        self._taken_back.clear()


class RestoringNode(Protocol):
    """The node that keeps the files."""

    async def restore(self, claim: OwnerClaim, revert: Revert) -> bytes | None:
        """Restore files by the id of a revert; None if the owner was replaced.

        Raises:
            ExecutorUnreachable: It cannot be reached, or its answer was lost.
            UnknownRestore: What is to be undone is not known.
        """
        ...


class ConnectedRestores:
    """The files as one process reaches them, as patiently as the real client is."""

    def __init__(
        self,
        node: RestoringNode,
        ask: Callable[[Callable[[], Coroutine[Any, Any, bytes | None]]], Coroutine[Any, Any, Any]],
        clock: Clock,
        require_lease: Callable[[object], None],
    ) -> None:
        self._node = node
        self._ask = ask
        self._clock = clock
        self._require_lease = require_lease

    async def restore(self, claim: OwnerClaim, owner: Owner, revert: Revert) -> bytes:
        """Restore files by the id of a revert, or go on with it; return the report.

        Raises:
            RestoreFailed: They cannot be restored now.
            FenceLost: The claim is over: another process owns the chat.
        """
        self._require_lease(revert)
        until_s = self._clock.monotonic() + RETURN_S
        while True:
            try:
                report: bytes | None = await self._ask(lambda: self._node.restore(claim, revert))
            except UnknownRestore:
                raise RestoreFailed("The files could not be restored: it is unknown.") from None
            except ExecutorUnreachable:
                if self._clock.monotonic() >= until_s:
                    raise RestoreFailed("The files could not be restored: no node.") from None
            else:
                if report is None:
                    raise FenceLost(claim.chat_id)
                return report
            await self._clock.sleep(AGAIN_S)
