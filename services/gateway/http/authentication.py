"""Authenticates HTTP requests: by a bearer API key, or by a session cookie.

A request with an Authorization header is authenticated by that alone. Browsers send cookies with
cross-site requests too, so a request with a cookie must also prove that it comes from this origin,
and one that changes something must repeat the CSRF token of its session.
"""

import hmac
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from starlette.requests import Request

from gateway.http.addresses import PublicUrl
from gateway.http.cors import Cors
from gateway.http.forwarding import HOST
from gateway.http.problems.errors import HttpProblem
from gateway.http.session_cookies import SessionCookies
from gateway.http.websockets import is_websocket
from gateway.identity.domain import UserRecord
from gateway.identity.engine.api_key_cache import ApiKeyCache
from gateway.identity.engine.sign_in import SESSION_IDLE
from gateway.identity.secret_tokens import csrf_token_of, digest_of
from gateway.identity.store.credentials import IdentityStore
from parley.clock import Clock
from parley.identity import ApiKey, CallerRule, MalformedApiKey, User

CSRF_HEADER = "x-csrf-token"
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
        credential_id: The id of the API key or of the session.
        scopes: What the API key may be used for; empty for all that the user may do.
    """

    record: UserRecord
    credential: Credential
    credential_id: str
    scopes: frozenset[str] = frozenset()

    @property
    def user(self) -> User:
        """The user as named in calls to other services."""
        return self.record.as_user

    @property
    def session_id(self) -> str:
        """The id of the session; empty for other credentials."""
        return self.credential_id if self.credential is Credential.SESSION else ""


def check_scope(principal: Principal, rule: CallerRule | None) -> None:
    """Check that the scopes of an API key are enough for a method, by the rule of its callers.

    Raises:
        HttpProblem: It has scopes, and not the one that is needed (403).
    """
    scope = None if rule is None else rule.scope
    if not principal.scopes or (rule is not None and rule.accepts_scopes(principal.scopes)):
        return
    if scope is None:
        detail = "An API key with scopes may not do this; sign in, or use a key without scopes."
        raise HttpProblem.of("SCOPE_MISSING", detail)
    detail = f"The API key does not have the scope {scope}; use one that has it."
    raise HttpProblem.of("SCOPE_MISSING", detail, facts={"scope": scope})


class Authentication:
    """Authenticates requests."""

    def __init__(
        self,
        people: IdentityStore,
        keys: ApiKeyCache,
        *,
        public_url: PublicUrl,
        clock: Clock,
        cors: Cors | None = None,
    ) -> None:
        self._identity_store = people
        self._keys = keys
        self.public_url = public_url
        self._clock = clock
        self._cors = cors or Cors()
        self.cookies = SessionCookies(public_url)

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
        token = self.cookies.session_token(request)
        if not token:
            raise _unauthenticated("Send Authorization: Bearer with an API key, or sign in.")
        self._refuse_other_sites(request)
        if not is_websocket(request.scope) and request.method not in SAFE_METHODS:
            check_csrf_token(request.headers.get(CSRF_HEADER, ""), token)
        found = await self._by_session(token)
        if found is None:
            raise _unauthenticated("The session is over; sign in again.")
        return found

    async def principal(self, request: Request) -> Principal | None:
        """Return the user of a session cookie, if any; for pages that do not require a sign-in."""
        token = self.cookies.session_token(request)
        return await self._by_session(token) if token else None

    def check_program_or_own_page(self, request: Request) -> None:
        """Refuse a request without credentials that a page of another site makes.

        Raises:
            HttpProblem: A browser says that another site made it (403).
        """
        if "origin" in request.headers or "sec-fetch-site" in request.headers:
            self._refuse_other_sites(request)

    def check_same_origin(self, request: Request) -> None:
        """Refuse a form that another site sent.

        Raises:
            HttpProblem: It was sent by another site (403).
        """
        self._refuse_other_sites(request)

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

    async def _by_api_key(self, authorization: str) -> Principal:
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise _invalid_key("Send the API key as Authorization: Bearer KEY.")
        try:
            key = ApiKey.parse(text.strip())
        except MalformedApiKey as error:
            raise _invalid_key(f"The bearer token is {error}.") from None
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
            await self._identity_store.touch_api_key(
                stored.id, now.replace(second=0, microsecond=0)
            )
            self._keys.forget()
        return Principal(stored.user, Credential.API_KEY, stored.id, stored.scopes)

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
        return Principal(session.user, Credential.SESSION, session.id)

    def _refuse_other_sites(self, request: Request) -> None:
        if self._cors.allows(request.headers.get("origin", "")):
            return
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
        own = f"{self.public_url.scheme}://{request.scope.get(HOST, '')}"
        return origin in (str(self.public_url), own)


def _ids_of(signed_in: Collection[Principal], credential: Credential) -> tuple[str, ...]:
    return tuple(each.credential_id for each in signed_in if each.credential is credential)


def check_csrf_token(given: str, session_token: str) -> None:
    """Refuse a request that does not repeat the CSRF token of its session.

    Raises:
        HttpProblem: The token is missing or another one (403).
    """
    if not hmac.compare_digest(given.encode(), csrf_token_of(session_token).encode()):
        raise HttpProblem.of(
            "CROSS_SITE_REQUEST",
            "Repeat the CSRF token of the session in the header X-CSRF-Token; it is in the cookie "
            "that ends in parley_csrf.",
        )


def _unauthenticated(detail: str) -> HttpProblem:
    headers = {"www-authenticate": 'Bearer realm="parley"'}
    return HttpProblem.of("UNAUTHENTICATED", detail, headers=headers)


def _invalid_key(detail: str) -> HttpProblem:
    headers = {"www-authenticate": 'Bearer realm="parley", error="invalid_token"'}
    return HttpProblem.of("INVALID_API_KEY", detail, headers=headers)
