"""Signing people in: by password and second factor, passkey, one-time link and login link."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from gateway.identity.domain import (
    LinkRecord,
    SessionRecord,
    SignInMethod,
    UserKind,
    UserRecord,
)
from gateway.identity.engine.attempts import Attempts, sign_in_charges
from gateway.identity.engine.passkeys import CONTINUATION_LIFETIME, Passkeys
from gateway.identity.engine.password_wait import PasswordWait
from gateway.identity.engine.passwords import Passwords
from gateway.identity.engine.second_factors import SecondFactors
from gateway.identity.errors import (
    LinkInvalid,
    LinkState,
    PasskeyRefused,
    SecondFactorRefused,
    SignInBusy,
    SignInNotBegun,
    SignInRefused,
)
from gateway.identity.secret_tokens import TokenBytes, csrf_token_of, digest_of, new_token
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.second_factors import (
    SecondFactorStore,
    Unfinished,
    UnfinishedPurpose,
)
from gateway.identity.store.sessions import NewSession, SessionStore
from gateway.identity.store.sign_in_links import LinkStore
from parley.clock import Clock
from parley.identity import UserId

SESSION_IDLE: Final = timedelta(hours=12)
SESSION_LIFETIME: Final = timedelta(days=7)
ADDRESS_CHARACTERS_MAX: Final = 64
USER_AGENT_CHARACTERS_MAX: Final = 256
#: Why a sign-in was refused, in the audit log.
WRONG_PASSWORD: Final = "wrong_login_or_password"
WRONG_SECOND_FACTOR: Final = "wrong_second_factor"
WRONG_PASSKEY: Final = "wrong_passkey"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a sign-in comes from.

    Attributes:
        address: The key of the client's address.
        user_agent: What the browser calls itself.
        device_token: By which the browser is known; empty for a new one.
        session_token: Of the session that the new one replaces; empty for none.
    """

    address: str
    user_agent: str = ""
    device_token: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A new session, with the tokens that are stored as digests only."""

    session: SessionRecord
    session_token: str = field(repr=False)
    device_token: str = field(repr=False)

    @property
    def csrf_token(self) -> str:
        """The token that requests with the session's cookie repeat."""
        return csrf_token_of(self.session_token)


@dataclass(frozen=True, slots=True)
class SecondFactorNeeded:
    """A sign-in whose second factor is missing, and the token of the request that gives it."""

    continuation: str = field(repr=False)


class SignIns:
    """Makes sessions.

    Args:
        people: Reads users.
        sessions: Stores sessions and passwords.
        links: Stores one-time links.
        passwords: Verifies passwords.
        attempts: Slows attempts down.
        factor_store: Stores unfinished sign-ins.
        second_factors: Checks second factors.
        passkeys: Verifies passkeys.
        clock: The clock.
        new_id: Generates ids.
        token_bytes: Random bytes of tokens.
    """

    def __init__(
        self,
        people: IdentityStore,
        sessions: SessionStore,
        links: LinkStore,
        *,
        passwords: Passwords,
        attempts: Attempts,
        factor_store: SecondFactorStore,
        second_factors: SecondFactors,
        passkeys: Passkeys,
        clock: Clock,
        new_id: Callable[[], str],
        token_bytes: TokenBytes,
    ) -> None:
        self._identity_store = people
        self._sessions = sessions
        self._links = links
        self._passwords = passwords
        self._password_wait = PasswordWait(passwords, clock)
        self._attempts = attempts
        self._factor_store = factor_store
        self._second_factors = second_factors
        self._passkeys = passkeys
        self._clock = clock
        self._new_id = new_id
        self._token_bytes = token_bytes

    async def by_password(
        self, login: str, password: str, origin: Origin
    ) -> SignedIn | SecondFactorNeeded:
        """Sign a user in; unknown users and wrong passwords take the same time.

        Raises:
            SignInRefused: The login or the password is wrong, or the user may not sign in.
            TooManyAttempts: The attempt has to wait.
            SignInBusy: Too many passwords wait to be checked.
        """
        login, token = login.strip().lower(), origin.device_token
        # First, so that it costs next to nothing and does not count as an attempt.
        await self._password_wait.require_place(is_known=bool(token))
        found = None
        if "\0" not in login:
            found = await self._sessions.find_by_login(login, digest_of(token) if token else None)
        known_device = token if found is not None and found.is_known_device else None
        is_known = known_device is not None
        self._passwords.require_place(is_known=is_known)
        choices = sign_in_charges(login, origin.address, known_device)
        charges = await self._attempts.count(*choices)
        stored = None if found is None else found.hash
        try:
            is_right = await self._passwords.matches(password, stored, is_known=is_known)
        except SignInBusy:
            await self._attempts.forgive(charges)
            raise
        if found is None or stored is None or not is_right or not _may_sign_in(found.user):
            user_id = None if found is None else found.user.id
            await self._sessions.record_refusal(SignInMethod.PASSWORD, WRONG_PASSWORD, user_id)
            raise SignInRefused
        if self._passwords.is_outdated(stored):
            renewed = await self._passwords.hash(password)
            await self._sessions.renew_hash(found.user.id, stored, renewed)
            stored = renewed
        if await self._factor_store.has_totp(found.user.id):
            await self._attempts.forgive(charges)
            return await self._second_factor_needed(found.user.id, stored)
        session = self._session(found.user.id, SignInMethod.PASSWORD, origin, known_device)
        await self._sessions.open(self._stored(session, origin), verified_hash=stored)
        await self._attempts.forgive(charges)
        return session

    async def by_second_factor(self, continuation: str, code: str, origin: Origin) -> SignedIn:
        """Finish a sign-in with a code of the authenticator app or a recovery code.

        Raises:
            SignInNotBegun: No password was given before, or too long ago.
            SecondFactorRefused: The code is wrong, or was used before.
            TooManyAttempts: It was wrong too often lately.
            SignInRefused: The password was changed meanwhile, or the user deactivated.
        """
        digest, now = digest_of(continuation), self._clock.now()
        begun = await self._factor_store.find(digest, UnfinishedPurpose.SECOND_FACTOR, now)
        if begun is None or begun.user_id is None:
            raise SignInNotBegun
        token, known_device = origin.device_token, ""
        if token and await self._sessions.is_known_device(begun.user_id, digest_of(token)):
            known_device = token
        try:
            await self._second_factors.check(begun.user_id, code, known_device)
        except SecondFactorRefused:
            await self._sessions.record_refusal(
                SignInMethod.PASSWORD, WRONG_SECOND_FACTOR, begun.user_id
            )
            raise
        if await self._factor_store.take(digest, UnfinishedPurpose.SECOND_FACTOR, now) is None:
            raise SignInNotBegun
        session = self._session(begun.user_id, SignInMethod.PASSWORD, origin, known_device)
        verified_hash = begun.content.decode()
        await self._sessions.open(self._stored(session, origin), verified_hash=verified_hash)
        return session

    async def by_passkey(self, continuation: str, credential_json: str, origin: Origin) -> SignedIn:
        """Sign the user of a passkey in.

        Raises:
            SignInNotBegun: It was not begun, or too long ago.
            PasskeyRefused: The passkey is not known, or its answer is not valid.
            SignInRefused: The user was deactivated.
        """
        try:
            user_id = await self._passkeys.user_of(
                continuation=continuation, credential_json=credential_json
            )
        except PasskeyRefused:
            await self._sessions.record_refusal(SignInMethod.PASSKEY, WRONG_PASSKEY)
            raise
        session = self._session(user_id, SignInMethod.PASSKEY, origin)
        await self._sessions.open(self._stored(session, origin))
        return session

    async def refuse_issuer(self, reason: str, user_id: UserId | None = None) -> None:
        """Record that a sign-in with an identity provider was refused."""
        await self._sessions.record_refusal(SignInMethod.OIDC, reason, user_id)

    async def by_issuer(self, user_id: UserId, origin: Origin) -> SignedIn:
        """Sign in a user whom an identity provider verified.

        Raises:
            SignInRefused: The user was deactivated.
        """
        session = self._session(user_id, SignInMethod.OIDC, origin)
        await self._sessions.open(self._stored(session, origin))
        return session

    async def offered_link(self, token: str) -> tuple[LinkRecord, UserRecord]:
        """Return what a one-time link is for, and its user.

        Raises:
            LinkInvalid: It does not work.
        """
        return await self._links.offered(digest_of(token), self._clock.now())

    async def by_link(
        self, token: str, password: str, origin: Origin
    ) -> SignedIn | SecondFactorNeeded:
        """Spend a one-time link: set the password of its user, and sign them in.

        Raises:
            LinkInvalid: The link does not work.
            InvalidRequest: The password is refused; the link still works.
            SignInBusy: Too many passwords wait to be hashed.
        """
        digest = digest_of(token)
        _, user = await self._links.offered(digest, self._clock.now())
        if user.kind is not UserKind.PERSON:
            raise LinkInvalid(LinkState.REVOKED)
        await self._passwords.check(password, "password", known_of(user))
        new_hash = await self._passwords.hash(password)
        now = self._clock.now()
        if await self._factor_store.has_totp(user.id):
            await self._links.use(digest, new_hash, None, now)
            return await self._second_factor_needed(user.id, new_hash)
        session = self._session(user.id, SignInMethod.SIGN_IN_LINK, origin)
        await self._links.use(digest, new_hash, self._stored(session, origin), now)
        return session

    async def owner_by_login_link(self, login_digest: bytes, origin: Origin) -> SignedIn | None:
        """Consume the login token of the owner; None if it was used before."""
        owner = await self._identity_store.find_owner()
        if owner is None:
            return None
        session = self._session(owner.id, SignInMethod.LOGIN_LINK, origin)
        try:
            await self._sessions.open(self._stored(session, origin), login_digest=login_digest)
        except SignInRefused:
            return None
        return session

    async def _second_factor_needed(
        self, user_id: UserId, verified_hash: str
    ) -> SecondFactorNeeded:
        continuation, now = new_token(self._token_bytes), self._clock.now()
        await self._factor_store.begin(
            digest_of(continuation),
            UnfinishedPurpose.SECOND_FACTOR,
            Unfinished(user_id, verified_hash.encode()),
            now=now,
            expires_at=now + CONTINUATION_LIFETIME,
        )
        return SecondFactorNeeded(continuation)

    def _session(
        self,
        user_id: UserId,
        method: SignInMethod,
        origin: Origin,
        known_device: str | None = None,
    ) -> SignedIn:
        now = self._clock.now()
        record = SessionRecord(
            id=self._new_id(),
            user_id=user_id,
            method=method,
            address=origin.address[:ADDRESS_CHARACTERS_MAX],
            user_agent=origin.user_agent.replace("\0", "")[:USER_AGENT_CHARACTERS_MAX],
            created_at=now,
            last_seen_at=now,
            expires_at=now + SESSION_LIFETIME,
        )
        # A new token at every sign-in: one that was known before gives no access to the session.
        token = new_token(self._token_bytes)
        return SignedIn(record, token, known_device or new_token(self._token_bytes))

    @staticmethod
    def _stored(session: SignedIn, origin: Origin) -> NewSession:
        replaced = origin.session_token
        return NewSession(
            record=session.session,
            digest=digest_of(session.session_token),
            device_digest=digest_of(session.device_token),
            replaced_digest=digest_of(replaced) if replaced else None,
        )


def known_of(user: UserRecord) -> tuple[str, ...]:
    """Return what is known of a user, which must not be their password."""
    return user.login, user.display_name, user.email, user.email.partition("@")[0]


def _may_sign_in(user: UserRecord) -> bool:
    return user.is_active and user.kind is UserKind.PERSON
