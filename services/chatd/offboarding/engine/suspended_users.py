"""Suspended users: their turns are stopped, and the data of deleted users is removed.

The bus publishes that a user changed; the gateway returns the status. A notice can be lost, so
every process also checks all owners at its start and once an hour, and again a minute later while
no gateway answers, as at the start of an installation, or after a check or a notice failed. All
operations are idempotent and may run in several processes at once.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from chatd.chats.domain.commands import Command, Interrupt
from chatd.content.domain.messages import ErrorKind
from chatd.content.domain.tools import ExecutorUnreachable
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.profile import ModelChoice
from chatd.offboarding.store.suspended_users import PostgresSuspendedUsers
from chatd.primitives.domain.errors import ChatError, ChatNotFound
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.turns.domain.ports import Setups
from chatd.turns.domain.turn import TurnSetup
from chatd.users.domain.status import UserStatus, UserStatuses, UserSuspended
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

CHECK_S = 3600.0
SETTLE_S = 60.0
OWNERS_PER_REQUEST = 500
CALLS_PER_REQUEST = 500
FIRST_ID = OwnerId("00000000-0000-0000-0000-000000000000")
FIRST_CHAT = ChatId("00000000-0000-0000-0000-000000000000")

logger = logging.getLogger(__name__)


#: Drops the results of executions from the journal of a generation, or raises ExecutorUnreachable.
DropResults = Callable[[str, Sequence[ExecutionId]], Awaitable[None]]


async def _dropped_elsewhere(generation: str, execution_ids: Sequence[ExecutionId]) -> None:
    """Drop nothing: no executor is connected."""


@dataclass(frozen=True, slots=True)
class UserSuspensionPorts:
    """The dependencies of `UserSuspension`."""

    store: PostgresSuspendedUsers
    statuses: UserStatuses
    apply: Callable[[ChatId, Command], Awaitable[object]]
    delete: Callable[[ChatId, OwnerId], Awaitable[None]]
    clock: Clock


class UserSuspension:
    """The suspended users as cached in this process; `run` refreshes the cache."""

    def __init__(self, ports: UserSuspensionPorts) -> None:
        self._ports = ports
        self._suspended: frozenset[OwnerId] = frozenset()
        self._drop_results: DropResults = _dropped_elsewhere
        #: When all users were checked; None while a check is due.
        self._checked_s: float | None = None
        #: Since when no gateway answers; None if the last question was answered.
        self._unanswered_s: float | None = None

    def connect(self, drop_results: DropResults) -> None:
        """Set how the results of a deleted user's calls are dropped from the executor's journal."""
        self._drop_results = drop_results

    def check(self, owner_id: OwnerId) -> None:
        """Raise an error if the user is suspended.

        Raises:
            UserSuspended: the user is deactivated or deleted.
        """
        if owner_id in self._suspended:
            raise UserSuspended(owner_id)

    async def run(self) -> NoReturn:
        """Check all users periodically, and finish operations that other processes left undone."""
        while True:
            now_s = self._ports.clock.monotonic()
            try:
                if self._checked_s is None or now_s - self._checked_s >= CHECK_S:
                    await self._check_all_users(now_s)
                await self._settle()
            except (DatabaseUnavailable, ExecutorUnreachable) as error:
                logger.warning("locked-out users were not looked after: %s", error)
            await self._ports.clock.sleep(SETTLE_S)

    async def on_notice(self, user_id: OwnerId) -> None:
        """Check one user who changed."""
        try:
            await self._note(await self._statuses_of((user_id,)))
            await self._settle()
        except (DatabaseUnavailable, ExecutorUnreachable) as error:
            self._checked_s = None
            logger.warning("a user's change waits for the next look: %s", error)

    async def _check_all_users(self, now_s: float) -> None:
        """Check all users; the check stays due if it fails or a question is not answered."""
        # Set first: a notice that fails while the check runs makes the next one due.
        self._checked_s = now_s
        after, is_complete = FIRST_ID, False
        try:
            while owners := await self._ports.store.owners(after, OWNERS_PER_REQUEST):
                await self._note(await self._statuses_of(owners))
                after = owners[-1]
            is_complete = True
        finally:
            if not is_complete:
                self._checked_s = None

    async def _statuses_of(self, owners: Sequence[OwnerId]) -> dict[OwnerId, UserStatus]:
        """Ask for statuses; if no gateway answers, all users are checked again soon.

        At a start that is normal: the gateway starts later. It is a warning only if it lasts.
        """
        now_s = self._ports.clock.monotonic()
        statuses = await self._ports.statuses.of(owners)
        if statuses:
            self._unanswered_s = None
            return statuses
        self._checked_s = None
        if self._unanswered_s is None:
            self._unanswered_s = now_s
        lasted_s = now_s - self._unanswered_s
        if lasted_s >= SETTLE_S:
            logger.warning(
                "no gateway has answered with the status of users for %.0f s: is one running?",
                lasted_s,
            )
        return statuses

    async def _note(self, statuses: dict[OwnerId, UserStatus]) -> None:
        for user_id, status in statuses.items():
            match status:
                case UserStatus.DEACTIVATED:
                    await self._ports.store.suspend(user_id, is_deleted=False)
                case UserStatus.DELETED:
                    await self._ports.store.suspend(user_id, is_deleted=True)
                case UserStatus.ACTIVE if user_id in self._suspended:
                    await self._ports.store.reinstate(user_id)
                case UserStatus.ACTIVE | UserStatus.UNKNOWN:
                    # An unknown user is no reason to delete data.
                    continue

    async def _settle(self) -> None:
        store = self._ports.store
        self._suspended = await store.suspended()
        if not self._suspended:
            return
        after = FIRST_CHAT
        while turns := await store.running_turns(after):
            for turn in turns:
                try:
                    await self._ports.apply(turn.chat_id, Interrupt(turn.turn_id, None))
                except ChatError as error:
                    logger.info("a turn of a suspended user ended by itself: %s", error)
            after = turns[-1].chat_id
        while roots := await store.roots_of_deleted():
            for chat_id, owner_id in roots:
                await self._delete(chat_id, owner_id)
        await store.delete_rest()

    async def _delete(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        try:
            for generation, ids in (await self._ports.store.journaled_calls(chat_id)).items():
                for start in range(0, len(ids), CALLS_PER_REQUEST):
                    batch = ids[start : start + CALLS_PER_REQUEST]
                    await self._drop_results(generation, batch)
            await self._ports.delete(chat_id, owner_id)
        except ChatNotFound:
            # Another process deleted it first.
            return
        logger.info("a chat was removed with its user", extra={"chat_id": chat_id})


class SuspensionCheckedSetups:
    """Prepares turns, except for suspended users."""

    def __init__(self, setups: Setups, suspension: UserSuspension) -> None:
        self._setups = setups
        self._suspension = suspension

    async def prepare(
        self, chat_id: ChatId, owner: Owner, choice: ModelChoice | None = None
    ) -> TurnSetup:
        """Return the setup of the next turn of a chat.

        Raises:
            ModelError: the owner is suspended, or no model can be used.
        """
        try:
            self._suspension.check(owner.id)
        except UserSuspended as suspended:
            message = "The owner of this chat is locked out; nothing is done for them any more."
            raise ModelError(ErrorKind.AUTH, message, is_retryable=False) from suspended
        return await self._setups.prepare(chat_id, owner, choice)
