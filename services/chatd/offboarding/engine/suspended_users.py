"""Users who may not be acted for: their turns stop, and what the deleted ones had is removed.

The bus says that a user changed, the gateway says how. A notice can be lost, so every process also
asks about all owners when it starts and once an hour. Everything here can be done twice, by any
number of processes at once.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn

from chatd.chats.domain.commands import Command, Interrupt
from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.choice import ModelChoice
from chatd.models.domain.language_model import ModelError
from chatd.offboarding.store.suspended_users import PostgresBarring
from chatd.primitives.domain.errors import ChatError, ChatNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.turns.domain.ports import Setups
from chatd.turns.domain.turn import TurnSetup
from chatd.users.domain.errors import UserBarred
from chatd.users.domain.status import Standing, Standings
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

CHECK_S = 3600.0
SETTLE_S = 60.0
OWNERS_PER_QUESTION = 500
FIRST_ID = OwnerId("00000000-0000-0000-0000-000000000000")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BarringPorts:
    """What barring needs from the world."""

    store: PostgresBarring
    standings: Standings
    apply: Callable[[ChatId, Command], Awaitable[object]]
    delete: Callable[[ChatId, OwnerId], Awaitable[None]]
    clock: Clock


class Barring:
    """Who is barred, as this process knows it; `run` keeps it true."""

    def __init__(self, ports: BarringPorts) -> None:
        self._ports = ports
        self._barred: frozenset[OwnerId] = frozenset()

    def check(self, owner_id: OwnerId) -> None:
        """Return if a user may be acted for.

        Raises:
            UserBarred: they were locked out or deleted.
        """
        if owner_id in self._barred:
            raise UserBarred(owner_id)

    async def run(self) -> NoReturn:
        """Ask about everyone now and then, and finish what others may have left half done."""
        checked_s: float | None = None
        while True:
            now_s = self._ports.clock.monotonic()
            try:
                if checked_s is None or now_s - checked_s >= CHECK_S:
                    await self._check_everyone()
                    checked_s = now_s
                await self._settle()
            except DatabaseUnavailable as error:
                logger.warning("locked-out users were not looked after: %s", error)
            await self._ports.clock.sleep(SETTLE_S)

    async def heard(self, user_id: OwnerId) -> None:
        """Look after a user who changed."""
        try:
            await self._note(await self._ports.standings.of((user_id,)))
            await self._settle()
        except DatabaseUnavailable as error:
            logger.warning("a user's change waits for the next look: %s", error)

    async def _check_everyone(self) -> None:
        after = FIRST_ID
        while owners := await self._ports.store.owners(after, OWNERS_PER_QUESTION):
            await self._note(await self._ports.standings.of(owners))
            after = owners[-1]

    async def _note(self, standings: dict[OwnerId, Standing]) -> None:
        for user_id, standing in standings.items():
            match standing:
                case Standing.DEACTIVATED:
                    await self._ports.store.bar(user_id, is_deleted=False)
                case Standing.DELETED:
                    await self._ports.store.bar(user_id, is_deleted=True)
                case Standing.ACTIVE if user_id in self._barred:
                    await self._ports.store.unbar(user_id)
                case Standing.ACTIVE | Standing.UNKNOWN:
                    # Somebody unknown is no reason to delete anything.
                    continue

    async def _settle(self) -> None:
        store = self._ports.store
        self._barred = await store.barred()
        if not self._barred:
            return
        for turn in await store.at_work():
            try:
                await self._ports.apply(turn.chat_id, Interrupt(turn.turn_id, None))
            except ChatError as error:
                logger.info("a turn of a barred user ended by itself: %s", error)
        while roots := await store.roots_of_deleted():
            for chat_id, owner_id in roots:
                await self._delete(chat_id, owner_id)
        await store.delete_rest()

    async def _delete(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        try:
            await self._ports.delete(chat_id, owner_id)
        except ChatNotFound:
            # Another process was faster.
            return
        logger.info("a chat was removed with its user", extra={"chat_id": chat_id})


class AllowedSetups:
    """Prepares no turn of a user who is barred."""

    def __init__(self, setups: Setups, barring: Barring) -> None:
        self._setups = setups
        self._barring = barring

    async def prepare(
        self, chat_id: ChatId, owner: Owner, choice: ModelChoice | None = None
    ) -> TurnSetup:
        """Return what the next turn of a chat runs with.

        Raises:
            ModelError: its owner is barred, or no model can be used.
        """
        try:
            self._barring.check(owner.id)
        except UserBarred as barred:
            message = "The owner of this chat is locked out; nothing is done for them any more."
            raise ModelError(ErrorKind.AUTH, message, is_retryable=False) from barred
        return await self._setups.prepare(chat_id, owner, choice)
