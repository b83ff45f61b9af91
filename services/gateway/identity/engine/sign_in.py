"""Signing people in: by password, by a one-time link, and the owner by the login link."""

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
from gateway.identity.engine.passwords import Passwords
from gateway.identity.errors import LinkInvalid, LinkState, SignInRefused
from gateway.identity.secret_tokens import TokenBytes, csrf_token_of, digest_of, new_token
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.sessions import NewSession, SessionStore
from gateway.identity.store.sign_in_links import LinkStore
from parley.clock import Clock
from parley.identity import UserId

SESSION_IDLE: Final = timedelta(hours=12)
SESSION_LIFETIME: Final = timedelta(days=7)
ADDRESS_CHARACTERS_MAX: Final = 64
USER_AGENT_CHARACTERS_MAX: Final = 256


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


class SignIns:
    """Makes sessions.

    Args:
        people: Reads users.
        sessions: Stores sessions and passwords.
        links: Stores one-time links.
        passwords: Verifies passwords.
        attempts: Slows attempts down.
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
        clock: Clock,
        new_id: Callable[[], str],
        token_bytes: TokenBytes,
    ) -> None:
        self._identity_store = people
        self._sessions = sessions
        self._links = links
        self._passwords = passwords
        self._attempts = attempts
        self._clock = clock
        self._new_id = new_id
        self._token_bytes = token_bytes

    async def by_password(self, login: str, password: str, origin: Origin) -> SignedIn:
        """Sign a user in; unknown users and wrong passwords take the same time.

        Raises:
            SignInRefused: The login or the password is wrong, or the user may not sign in.
            TooManyAttempts: The attempt has to wait.
            SignInBusy: Too many passwords wait to be checked.
        """
        login = login.strip().lower()
        token = origin.device_token
        found = None
        if "\0" not in login:
            found = await self._sessions.find_by_login(login, digest_of(token) if token else None)
        known_device = token if found is not None and found.is_known_device else None
        charges = sign_in_charges(login, origin.address, known_device)
        await self._attempts.count(charges)
        stored = None if found is None else found.hash
        is_right = await self._passwords.matches(password, stored)
        if found is None or stored is None or not is_right or not _may_sign_in(found.user):
            raise SignInRefused
        session = self._session(found.user.id, SignInMethod.PASSWORD, origin, known_device)
        await self._sessions.open(self._stored(session, origin), verified_hash=stored)
        await self._attempts.forgive(charges)
        if self._passwords.is_outdated(stored):
            renewed = await self._passwords.hash(password)
            await self._sessions.renew_hash(found.user.id, stored, renewed)
        return session

    async def offered_link(self, token: str) -> tuple[LinkRecord, UserRecord]:
        """Return what a one-time link is for, and its user.

        Raises:
            LinkInvalid: It does not work.
        """
        return await self._links.offered(digest_of(token), self._clock.now())

    async def by_link(self, token: str, password: str, origin: Origin) -> SignedIn:
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
        session = self._session(user.id, SignInMethod.SIGN_IN_LINK, origin)
        await self._links.use(digest, new_hash, self._stored(session, origin))
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
        # A new token at every sign-in: whoever knew an old one knows nothing of the session.
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
