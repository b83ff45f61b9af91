"""Exports of accounts: who may ask for one and read it."""

from collections.abc import Callable, Sequence

from gateway.identity.domain import UserState
from gateway.identity.engine.users import Users
from gateway.identity.errors import ExportNotFound, UserStillActive
from gateway.identity.store.account_exports import ExportRecord, ExportStore
from parley.clock import Clock
from parley.identity import User
from parley.telemetry import audit


class AccountExports:
    """Begins, lists and finds exports.

    Administrators could read all chats of a user in an export, so they get exports of deactivated
    users only.
    """

    def __init__(
        self, store: ExportStore, users: Users, *, clock: Clock, new_id: Callable[[], str]
    ) -> None:
        self._store = store
        self._users = users
        self._clock = clock
        self._new_id = new_id

    async def create(self, caller: User, user_id: str) -> ExportRecord:
        """Begin an export, or return the one that runs.

        Raises:
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
            UserStillActive: The user is another person who is active.
        """
        holder_id = await self._check(caller, user_id)
        await self._store.add(self._new_id(), holder_id, caller.id, self._clock.now())
        audit("account_export.requested", user_id=caller.id, of_user_id=holder_id)
        return (await self._store.list(holder_id, self._clock.now()))[0]

    async def list(self, caller: User, user_id: str) -> Sequence[ExportRecord]:
        """Return the exports of a user, newest first; with the errors of `create`."""
        return await self._store.list(await self._check(caller, user_id), self._clock.now())

    async def find(self, caller: User, user_id: str, export_id: str) -> ExportRecord:
        """Return an export that ended, whose archive the caller may read.

        Raises:
            ExportNotFound: There is none; and the errors of `create`.
        """
        for record in await self.list(caller, user_id):
            if record.id == export_id.lower() and record.completed_at is not None:
                audit("account_export.read", user_id=caller.id, of_user_id=record.user_id)
                return record
        raise ExportNotFound(export_id)

    async def _check(self, caller: User, user_id: str) -> str:
        if user_id.lower() == caller.id:
            return caller.id
        holder = await self._users.managed_by(caller, user_id)
        if holder.state is not UserState.DEACTIVATED:
            raise UserStillActive(holder.id)
        return holder.id
