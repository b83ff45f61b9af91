"""The sessions and the password of a user, as the user manages them."""

from collections.abc import Sequence

from gateway.identity.domain import SessionRecord, UserKind
from gateway.identity.engine.attempts import PASSWORD_CHANGE, Attempts
from gateway.identity.engine.passwords import Passwords
from gateway.identity.engine.sign_in import SESSION_IDLE, known_of
from gateway.identity.errors import (
    IsServiceAccount,
    SessionNotFound,
    SignInRefused,
    UserNotFound,
)
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.sessions import SessionStore
from parley.clock import Clock
from parley.identity import User


class OwnSessions:
    """The sessions and passwords of users."""

    def __init__(
        self,
        people: IdentityStore,
        sessions: SessionStore,
        *,
        passwords: Passwords,
        attempts: Attempts,
        clock: Clock,
    ) -> None:
        self._identity_store = people
        self._sessions = sessions
        self._passwords = passwords
        self._attempts = attempts
        self._clock = clock

    async def list(self, caller: User) -> Sequence[SessionRecord]:
        """Return the caller's sessions, the last used first."""
        return await self._sessions.list(caller.id, now=self._clock.now(), idle=SESSION_IDLE)

    async def end(self, caller: User, session_id: str) -> None:
        """End one session of the caller.

        Raises:
            SessionNotFound: The caller has no such session.
        """
        if not await self._sessions.end(caller.id, session_id):
            raise SessionNotFound(session_id)

    async def sign_out(self, caller: User, session_id: str, *, everywhere: bool) -> int:
        """End the session of a request, or all of the caller; return how many."""
        if everywhere:
            return await self._sessions.end(caller.id)
        return await self._sessions.end(caller.id, session_id) if session_id else 0

    async def change_password(
        self, caller: User, *, current: str, new: str, kept_session: str
    ) -> None:
        """Change the caller's password, or set the first one; other sessions end.

        Raises:
            IsServiceAccount: The caller is one.
            InvalidRequest: The new password is refused.
            SignInRefused: The current one is wrong.
            TooManyAttempts: It was wrong, or the new one was refused, too often lately.
            SignInBusy: Too many passwords wait to be checked.
        """
        user = await self._identity_store.find_user(caller.id)
        if user is None:
            raise UserNotFound(caller.id)
        if user.kind is not UserKind.PERSON:
            raise IsServiceAccount(caller.id)
        # Before the check, which takes a while.
        charges = (PASSWORD_CHANGE.charge(caller.id),)
        await self._attempts.count(charges)
        await self._passwords.check(new, "new_password", known_of(user))
        stored = await self._sessions.find_hash(caller.id)
        if stored is not None and not await self._passwords.matches(current, stored, is_known=True):
            raise SignInRefused
        await self._attempts.forgive(charges)
        await self._sessions.change_password(
            caller.id,
            await self._passwords.hash(new),
            old_hash=stored,
            kept_session=kept_session,
            now=self._clock.now(),
        )
