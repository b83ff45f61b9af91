"""The runner of claimed chats, shared by all workers of a process."""

import logging
from collections.abc import Callable

from chatd.chats.domain.chat import ChatState, Claimed, NewMessage
from chatd.primitives.domain.ids import OwnerId
from chatd.spend.domain.ledger import LedgerEntry
from chatd.turns.domain.turn import TurnEnded
from chatd.turns.engine.chat_run import ChatRun
from chatd.turns.engine.dependencies import TurnDependencies, TurnLimits, TurnPorts
from chatd.turns.engine.history import Histories
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.engine.session import OwnershipLost
from parley.clock import Clock

__all__ = ["TurnLimits", "TurnPorts", "TurnRunner", "ignore_event"]

logger = logging.getLogger(__name__)


def ignore_event(ended: TurnEnded) -> None:
    """Ignore the end of a turn."""


def ignore_bill(entry: LedgerEntry, owner_id: OwnerId) -> None:
    """Ignore a call that no commit entered into the ledger."""


class TurnRunner:
    """Runs claimed chats and caches their histories."""

    def __init__(
        self,
        ports: TurnPorts,
        *,
        clock: Clock,
        jitter: Callable[[], float],
        may_act: Callable[[], bool],
        limits: TurnLimits | None = None,
        ended: Callable[[TurnEnded], None] = ignore_event,
        unbilled: Callable[[LedgerEntry, OwnerId], None] = ignore_bill,
    ) -> None:
        self._dependencies = TurnDependencies(
            ports,
            clock,
            jitter,
            may_act,
            ended,
            limits or TurnLimits(),
            unbilled,
            chats_running=lambda: self._running,
        )
        self._histories = Histories()
        self._running = 0

    def appended(
        self, before: ChatState, after: ChatState, messages: tuple[NewMessage, ...]
    ) -> None:
        """Apply a write of this process, so that a cached history is not read again."""
        self._histories.wrote(before, after, messages, self._dependencies.clock.now())

    async def run(self, claimed: Claimed, mailbox: Mailbox) -> None:
        """Run a chat that was just claimed until it rests or another process owns it.

        Raises:
            FenceLost: The lease of this process is too old to continue.
            ChatNotFound: The chat was deleted meanwhile.
        """
        chat_id = claimed.state.chat_id
        history = self._histories.take(chat_id)
        self._running += 1
        try:
            await ChatRun(self._dependencies, claimed, mailbox, history).run()
        except OwnershipLost:
            logger.info("a chat is run elsewhere now", extra={"chat_id": chat_id})
        else:
            self._histories.keep(chat_id, history)
        finally:
            self._running -= 1
