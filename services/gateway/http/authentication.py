"""Authenticates HTTP requests: by a bearer API key, or by a session cookie.

A request with an Authorization header is authenticated by that alone. Browsers send cookies with
cross-site requests too, so a request with a cookie must also prove that it comes from this origin.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from starlette.requests import Request

from gateway.http.addresses import PublicUrl
from gateway.http.problems.errors import HttpProblem
from gateway.http.websockets import is_websocket
from gateway.identity.domain import UserRecord
from gateway.identity.engine.api_key_cache import ApiKeyCache
from gateway.identity.store.credentials import IdentityStore
from parley.clock import Clock
from parley.identity import ApiKey, MalformedApiKey, User

SESSION_IDLE = timedelta(hours=12)
SESSION_LIFETIME = timedelta(days=7)
SESSION_TOKEN_BYTES = 32
# Use is recorded to the minute: a write per request would cost too much.
USE_ROUNDED_TO = timedelta(minutes=1)

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Credential(StrEnum):
    """The kind of credential of a request."""

    API_KEY = "api_key"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated user of a request.

    Attributes:
        record: The user.
        credential: The kind of credential.
        credential_id: The API key's id, or the digest of the session's token.
    """

    record: UserRecord
    credential: Credential
    credential_id: str

    @property
    def user(self) -> User:
        """The user as named in calls to other services."""
        return self.record.as_user


class Authentication:
    """Authenticates requests."""

    def __init__(
        self,
        people: IdentityStore,
        keys: ApiKeyCache,
        *,
        public_url: PublicUrl,
        clock: Clock,
        token_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._identity_store = people
        self._keys = keys
        self._public_url = public_url
        self._clock = clock
        self._token_bytes = token_bytes

    @property
    def cookie_name(self) -> str:
        """The name of the session cookie; the prefix makes browsers require https and this host."""
        return "__Host-parley_session" if self._public_url.is_https else "parley_session"

    async def require(self, request: Request) -> Principal:
        """Return the principal of a request.

        Raises:
            HttpProblem: There is no valid credential (401), or a cookie was sent cross-site (403).
        """
        authorization = request.headers.get("authorization")
        if is_websocket(request.scope) and "origin" in request.headers:
            self._refuse_other_sites(request)
        if authorization is not None:
            return await self._by_api_key(authorization)
        token = request.cookies.get(self.cookie_name)
        if token is None:
            raise _unauthenticated("Send Authorization: Bearer with an API key, or sign in.")
        self._refuse_other_sites(request)
        found = await self._by_session(token)
        if found is None:
            raise _unauthenticated("The session is over; sign in again.")
        return found

    async def principal(self, request: Request) -> Principal | None:
        """Return the user of a session cookie, if any; for pages that do not require a sign-in."""
        token = request.cookies.get(self.cookie_name)
        return None if token is None else await self._by_session(token)

    async def still_valid(self, signed_in: Collection[Principal]) -> frozenset[Principal]:
        """Return the principals whose credentials are still valid; it does not count as use."""
        now = self._clock.now()
        keys = _ids_of(signed_in, Credential.API_KEY)
        sessions = _ids_of(signed_in, Credential.SESSION)
        users = {
            **await self._identity_store.users_of_api_keys(keys, now),
            **await self._identity_store.users_of_sessions(sessions, now),
        }
        return frozenset(each for each in signed_in if users.get(each.credential_id) == each.user)

    async def sign_owner_in(self, login_digest: bytes) -> str | None:
        """Consume a login token and return the Set-Cookie of a new session; None if it was used."""
        token = (
            base64.urlsafe_b64encode(self._token_bytes(SESSION_TOKEN_BYTES)).decode().rstrip("=")
        )
        owner = await self._identity_store.sign_owner_in(
            login_digest=login_digest,
            session_digest=digest_of(token),
            now=self._clock.now(),
            lifetime=SESSION_LIFETIME,
        )
        if owner is None:
            return None
        attributes = (
            f"Path=/; HttpOnly; SameSite=Lax; Max-Age={SESSION_LIFETIME.total_seconds():.0f}"
        )
        secure = "; Secure" if self._public_url.is_https else ""
        return f"{self.cookie_name}={token}; {attributes}{secure}"

    async def _by_api_key(self, authorization: str) -> Principal:
        scheme, _, text = authorization.partition(" ")
        try:
            key = ApiKey.parse(text.strip())
        except MalformedApiKey as error:
            raise _invalid_key(f"The bearer token is {error}.") from None
        if scheme.lower() != "bearer":
            raise _invalid_key("Send the API key as Authorization: Bearer KEY.")
        stored = await self._keys.find(key.id)
        now = self._clock.now()
        # The same response for unknown, wrong, revoked and expired keys, so that they cannot be
        # told apart.
        if (
            stored is None
            or not key.matches(stored.digest)
            or stored.revoked_at is not None
            or (stored.expires_at is not None and stored.expires_at <= now)
            or not stored.user.is_active
        ):
            raise _invalid_key("The API key is not valid here, or not any more.")
        if stored.last_used_at is None or now - stored.last_used_at >= USE_ROUNDED_TO:
            await self._identity_store.touch_api_key(stored.id, now)
            self._keys.forget()
        return Principal(stored.user, Credential.API_KEY, stored.id)

    async def _by_session(self, token: str) -> Principal | None:
        digest = digest_of(token)
        session = await self._identity_store.find_session(digest)
        now = self._clock.now()
        if session is None or not session.user.is_active:
            return None
        if session.expires_at <= now or now - session.last_seen_at >= SESSION_IDLE:
            return None
        if now - session.last_seen_at >= USE_ROUNDED_TO:
            await self._identity_store.touch_session(digest, now)
        return Principal(session.user, Credential.SESSION, digest.hex())

    def _refuse_other_sites(self, request: Request) -> None:
        fetch_site = request.headers.get("sec-fetch-site")
        if is_websocket(request.scope):
            # Browsers let any page open a WebSocket with cookies, and always send its Origin.
            is_ours = self._is_own_origin(request.headers.get("origin", ""), request)
        elif request.method in SAFE_METHODS:
            is_ours = fetch_site in (None, "same-origin", "none")
        else:
            origin = request.headers.get("origin")
            is_ours = fetch_site == "same-origin" or (
                fetch_site is None and origin is not None and self._is_own_origin(origin, request)
            )
        if not is_ours:
            raise HttpProblem.of(
                "CROSS_SITE_REQUEST",
                "A session cookie counts only for requests of our own page; use an API key.",
            )

    def _is_own_origin(self, origin: str, request: Request) -> bool:
        # The Host was checked before, so it is as good as the public URL.
        own = f"{self._public_url.scheme}://{request.headers.get('host', '')}"
        return origin in (str(self._public_url), own)


def _ids_of(signed_in: Collection[Principal], credential: Credential) -> tuple[str, ...]:
    return tuple(each.credential_id for each in signed_in if each.credential is credential)


def digest_of(token: str) -> bytes:
    """Return the stored digest of a random token."""
    return hashlib.sha256(token.encode()).digest()


def _unauthenticated(detail: str) -> HttpProblem:
    headers = {"www-authenticate": 'Bearer realm="parley"'}
    return HttpProblem.of("UNAUTHENTICATED", detail, headers=headers)


def _invalid_key(detail: str) -> HttpProblem:
    headers = {"www-authenticate": 'Bearer realm="parley", error="invalid_token"'}
    return HttpProblem.of("INVALID_API_KEY", detail, headers=headers)
