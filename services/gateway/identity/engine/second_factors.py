"""Second factors of users: authenticator apps and recovery codes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gateway.identity.domain import PasskeyRecord, UserKind
from gateway.identity.engine.attempts import SECOND_FACTOR, Attempts
from gateway.identity.engine.totp import (
    RECOVERY_BYTES,
    RECOVERY_CODES,
    SECRET_BYTES,
    base32,
    matching_step,
    plain_code,
    recovery_code,
    recovery_digest,
    step_at,
    uri,
)
from gateway.identity.engine.users import Users
from gateway.identity.errors import (
    IsServiceAccount,
    SecondFactorRefused,
    TotpEnabled,
    TotpNotEnabled,
)
from gateway.identity.secret_tokens import TokenBytes
from gateway.identity.store.second_factors import SecondFactorStore, StoredTotp
from parley.clock import Clock
from parley.identity import User

#: Attempts of signed-in users are counted apart from those of sign-ins.
SESSION: Final = "session"


@dataclass(frozen=True, slots=True)
class NewTotp:
    """The secret of an app, as apps read it."""

    secret: str = field(repr=False)
    uri: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SecondFactorState:
    """The second factors of a user."""

    totp_confirmed_at: datetime | None
    codes_left: int
    passkeys: Sequence[PasskeyRecord]


class SecondFactors:
    """The second factors of users."""

    def __init__(
        self,
        store: SecondFactorStore,
        users: Users,
        *,
        attempts: Attempts,
        clock: Clock,
        new_id: Callable[[], str],
        token_bytes: TokenBytes,
        host: str,
    ) -> None:
        self._store = store
        self._users = users
        self._attempts = attempts
        self._clock = clock
        self._new_id = new_id
        self._token_bytes = token_bytes
        self._host = host

    async def state(self, caller: User) -> SecondFactorState:
        """Return the caller's second factors."""
        totp = await self._store.find_totp(caller.id)
        stored = await self._store.list_passkeys(caller.id)
        return SecondFactorState(
            None if totp is None else totp.confirmed_at,
            await self._store.count_codes(caller.id),
            tuple(each.record for each in stored),
        )

    async def start(self, caller: User) -> NewTotp:
        """Begin to add an app.

        Raises:
            IsServiceAccount: The caller is one.
            TotpEnabled: The caller has one.
            TotpUnavailable: There is no master key.
        """
        user = await self._users.find(caller.id)
        if user.kind is not UserKind.PERSON:
            raise IsServiceAccount(user.id)
        secret = self._token_bytes(SECRET_BYTES)
        await self._store.begin_totp(user.id, self._new_id(), secret, self._clock.now())
        return NewTotp(base32(secret), uri(secret, user.login, self._host))

    async def confirm(self, caller: User, code: str) -> Sequence[str]:
        """Finish adding an app, and return the recovery codes.

        Raises:
            TotpNotEnabled: None was begun.
            TotpEnabled: The caller has one.
            SecondFactorRefused: The code is wrong.
            TooManyAttempts: It was wrong too often lately.
        """
        totp = await self._totp(caller.id)
        if totp.confirmed_at is not None:
            raise TotpEnabled
        await self._check(caller.id, code, totp, SESSION, accepts_recovery=False)
        codes = self._codes()
        digests = [recovery_digest(each) for each in codes]
        await self._store.confirm_totp(caller.id, totp.id, digests, self._clock.now())
        return codes

    async def replace_codes(self, caller: User, code: str) -> Sequence[str]:
        """Make new recovery codes.

        Raises:
            TotpNotEnabled: The caller has no app.
            SecondFactorRefused: The code is wrong.
            TooManyAttempts: It was wrong too often lately.
        """
        await self.check(caller.id, code, SESSION)
        codes = self._codes()
        await self._store.replace_codes(caller.id, [recovery_digest(each) for each in codes])
        return codes

    async def remove(self, caller: User, code: str) -> None:
        """Remove the app and the recovery codes.

        Raises:
            TotpNotEnabled: The caller has no app.
            SecondFactorRefused: The code is wrong.
            TooManyAttempts: It was wrong too often lately.
        """
        await self.check(caller.id, code, SESSION)
        await self._store.remove_totp(caller.id)

    async def reset(self, caller: User, user_id: str) -> None:
        """Remove all second factors and passkeys of a user who lost them.

        Raises:
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
        """
        user = await self._users.managed_by(caller, user_id)
        await self._store.reset(user.id)

    async def check(self, user_id: str, code: str, known_as: str = "") -> None:
        """Check a code of the app, or spend a recovery code.

        Args:
            user_id: The user.
            code: The code.
            known_as: What shows that the caller signed in as this user before, whose attempts
                are counted by themselves; empty for everybody else.

        Raises:
            TotpNotEnabled: The user has no app.
            SecondFactorRefused: The code is wrong, or was used before.
            TooManyAttempts: It was wrong too often lately.
        """
        totp = await self._totp(user_id)
        if totp.confirmed_at is None:
            raise TotpNotEnabled
        await self._check(user_id, code, totp, known_as, accepts_recovery=True)

    async def _totp(self, user_id: str) -> StoredTotp:
        totp = await self._store.find_totp(user_id)
        if totp is None:
            raise TotpNotEnabled
        return totp

    async def _check(
        self, user_id: str, code: str, totp: StoredTotp, known_as: str, *, accepts_recovery: bool
    ) -> None:
        subject = (user_id, known_as) if known_as else (user_id,)
        charges = (SECOND_FACTOR.charge(*subject),)
        await self._attempts.count(charges)
        now = self._clock.now()
        step = matching_step(totp.secret, plain_code(code), step_at(now.timestamp()))
        is_right = step is not None and await self._store.accept_step(totp.id, step)
        if not is_right and accepts_recovery:
            is_right = await self._store.spend_code(user_id, recovery_digest(code), now)
        if not is_right:
            raise SecondFactorRefused
        await self._attempts.forgive(charges)

    def _codes(self) -> Sequence[str]:
        return tuple(
            recovery_code(self._token_bytes(RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)
        )
