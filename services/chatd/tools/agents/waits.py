"""Lets chats go on whose agents have ended.

That a wait is over is read from the stored states of the children, so nothing is lost when a
process dies between the end of a child and the next step of its parent: any process finds it.
"""

import asyncio
import logging
from typing import Final, Protocol

from chatd.chats.domain.agents import AgentWait
from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.commands import AnswerAction, Command, Supplied
from chatd.chats.rpc.claims import Claims, reserved
from chatd.content.domain.tools import InputAction, PendingKind
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

#: How often waits are read while there are any that a process knows of, and otherwise.
EVERY_S: Final = 2.0
RARELY_S: Final = 60.0
WAITS_MAX: Final = 50

logger = logging.getLogger(__name__)


class Waits(Protocol):
    """Finds the calls that wait for agents."""

    async def waits(self, waits_max: int) -> tuple[AgentWait, ...]:
        """Return calls that wait for agents, those that are over first."""
        ...


class Commands(Protocol):
    """Executes commands on chats."""

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Execute a command and return the state after it."""
        ...


class AgentWaits:
    """Answers calls that wait for agents.

    Args:
        waits: Finds them.
        chats: Executes the answers.
        claims: The worker of this process, which runs the chats that go on.
        clock: Time between two rounds that nothing requested.
    """

    def __init__(self, waits: Waits, chats: Commands, claims: Claims, clock: Clock) -> None:
        self._waits = waits
        self._chats = chats
        self._claims = claims
        self._clock = clock
        self._is_due = asyncio.Event()
        self._is_any_open = False

    def on_state(self, state: ChatState) -> None:
        """Look soon: a chat came to rest, or began to wait for agents."""
        is_waiting = any(
            call.kind is PendingKind.AGENTS and call.is_asked for call in state.pending
        )
        if is_waiting or (self._is_any_open and state.status in (Status.WAITING, Status.ERROR)):
            self._is_due.set()

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            self._is_due.clear()
            try:
                await self._round()
            except DatabaseUnavailable as outage:
                logger.warning("waits for agents are not looked at: %s", outage)
                self._is_any_open = True  # As far as is known.
            pause_s = EVERY_S if self._is_any_open else RARELY_S
            await is_set_within(self._is_due, pause_s, self._clock)

    async def _round(self) -> None:
        waits = await self._waits.waits(WAITS_MAX)
        self._is_any_open = bool(waits)
        over = [wait for wait in waits if wait.is_over]
        if len(over) == WAITS_MAX:
            self._is_due.set()
        for wait in over:
            with reserved(self._claims, wait.owner) as reservation:
                command = AnswerAction(
                    wait.action_id,
                    Supplied(InputAction.ACCEPT),
                    "null",
                    "",
                    reservation.claimed_by,
                )
                try:
                    state = await self._chats.apply(wait.chat_id, command)
                except ChatError:
                    continue  # Another process was first, or the chat was stopped.
                reservation.start(state)
