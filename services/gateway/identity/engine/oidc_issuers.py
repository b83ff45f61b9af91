"""Identity providers (OpenID Connect): their configuration, discovery, and verified identities.

A provider is trusted to say who one of its own users is, and nothing else. Each document that it
sends is checked against its configured issuer, and each ID token against the request that was made:
its key, algorithm, issuer, audience, nonce and time.
"""

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode, urlsplit

import jwt
import msgspec

from gateway.identity.domain import OidcIssuer
from gateway.identity.errors import IssuerNotFound, IssuerRefused, IssuerUnavailable
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.http import Connections, HttpError

#: Signatures with a key that only the issuer has; never "none", never a shared secret.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
DOCUMENT_BYTES_MAX: Final = 256 * 1024
EXCHANGE_S_MAX: Final = 10.0
METADATA_TTL_S: Final = 600.0
#: How far the clock of an issuer may be off.
SKEW: Final = timedelta(seconds=60)
TOKEN_AGE_MAX: Final = timedelta(minutes=10)
ISSUERS_MAX: Final = 32


class _Metadata(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str = ""
    code_challenge_methods_supported: tuple[str, ...] = ("S256",)


@dataclass(frozen=True, slots=True)
class OidcIdentity:
    """A user of an issuer, as a verified ID token says."""

    issuer: OidcIssuer
    subject: str
    claims: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a sign-in is bound to.

    Attributes:
        redirect_uri: Where the issuer sends the browser back to.
        state: Binds the answer to the browser.
        nonce: Binds the ID token to the request.
        challenge: The PKCE challenge, the digest of the verifier.
    """

    redirect_uri: str
    state: str
    nonce: str
    challenge: str


def read_issuers(path: Path | None) -> tuple[OidcIssuer, ...]:
    """Return the issuers of a file: a JSON list.

    Raises:
        ValueError: The file is not such a list, or an issuer is not served over HTTPS.
    """
    if path is None:
        return ()
    found = msgspec.json.decode(path.read_bytes(), type=tuple[OidcIssuer, ...])
    if len({each.name for each in found}) != len(found) or len(found) > ISSUERS_MAX:
        raise ValueError(f"give at most {ISSUERS_MAX} issuers with different names")
    for each in found:
        if not is_safe_address(each.issuer):
            raise ValueError(f"the issuer {each.name} has no https address")
        if "openid" not in each.scopes:
            raise ValueError(f"the issuer {each.name} needs the scope openid")
    return found


class StoredIssuers(Protocol):
    """The issuers that administrators configured."""

    async def all(self) -> tuple[OidcIssuer, ...]:
        """Return them without their secrets."""

    async def find(self, name: str) -> OidcIssuer | None:
        """Return one of them with its secret."""


class OidcIssuers:
    """Calls identity providers.

    Args:
        issuers: Those of the file; they come before stored ones of the same name.
        stored: Those that administrators configured; read for each sign-in, so that all
            processes use the same.
        clock: The clock.
    """

    def __init__(
        self, issuers: tuple[OidcIssuer, ...], stored: StoredIssuers, clock: Clock
    ) -> None:
        self.of_file = {each.name: each for each in issuers}
        self._stored = stored
        self._clock = clock
        self._metadata: BoundedCache[str, _Metadata] = BoundedCache(
            ISSUERS_MAX, clock=clock, ttl_of=lambda _: METADATA_TTL_S
        )
        self._keys: BoundedCache[str, jwt.PyJWKSet] = BoundedCache(
            ISSUERS_MAX, clock=clock, ttl_of=lambda _: METADATA_TTL_S
        )

    async def all(self) -> tuple[OidcIssuer, ...]:
        """Return all issuers: those of the file as they are there, then the others by name."""
        stored = await self._stored.all()
        others = (each for each in stored if each.name not in self.of_file)
        return (*self.of_file.values(), *others)

    async def find(self, name: str) -> OidcIssuer:
        """Return an issuer.

        Raises:
            IssuerNotFound: None has this name.
        """
        found = self.of_file.get(name) or await self._stored.find(name)
        if found is None:
            raise IssuerNotFound(name)
        return found

    async def authorization_url(self, issuer: OidcIssuer, asked: AuthorizationRequest) -> str:
        """Return the address at which a user signs in.

        Raises:
            IssuerUnavailable: It does not answer.
            IssuerRefused: Its metadata are not those of the issuer.
        """
        metadata = await self._discovered(issuer)
        query = {
            "response_type": "code",
            "client_id": issuer.client_id,
            "redirect_uri": asked.redirect_uri,
            "scope": " ".join(issuer.scopes),
            "state": asked.state,
            "nonce": asked.nonce,
            "code_challenge": asked.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query(metadata.authorization_endpoint, query)

    async def sign_out_url(self, issuer: OidcIssuer, return_to: str) -> str | None:
        """Return the address at which a user signs out of the issuer; None if it has none.

        Raises:
            IssuerUnavailable: It does not answer.
            IssuerRefused: Its metadata are not those of the issuer.
        """
        endpoint = (await self._discovered(issuer)).end_session_endpoint
        query = {"client_id": issuer.client_id, "post_logout_redirect_uri": return_to}
        return _with_query(endpoint, query) if endpoint else None

    async def identity(
        self, issuer: OidcIssuer, *, code: str, verifier: str, redirect_uri: str, nonce: str
    ) -> OidcIdentity:
        """Exchange a code for the verified identity of a user.

        Raises:
            IssuerUnavailable: It does not answer.
            IssuerRefused: It refuses the code, or its ID token is not valid for this request.
        """
        metadata = await self._discovered(issuer)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": issuer.client_id,
            "code_verifier": verifier,
        }
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        if issuer.client_secret:
            headers["Authorization"] = _basic(issuer)
        body = urlencode(form).encode()
        answer = await _fetched(metadata.token_endpoint, headers, body)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise IssuerRefused("the answer has no ID token")
        return await self._verified(issuer, metadata, token, nonce)

    async def _verified(
        self, issuer: OidcIssuer, metadata: _Metadata, token: str, nonce: str
    ) -> OidcIdentity:
        key = await self._key(issuer, metadata, token)
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=issuer.client_id,
                issuer=issuer.issuer,
                # Times are compared with the clock of this process.
                options={
                    "require": ["iss", "aud", "sub", "exp", "iat"],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except jwt.PyJWTError as error:
            raise IssuerRefused(f"the ID token is not valid: {error}") from error
        self._check(issuer, claims, nonce)
        return OidcIdentity(issuer, claims["sub"], claims)

    def _check(self, issuer: OidcIssuer, claims: Mapping[str, Any], nonce: str) -> None:
        now = self._clock.now().timestamp()
        issued, expires = claims["iat"], claims["exp"]
        if not isinstance(issued, int | float) or not isinstance(expires, int | float):
            raise IssuerRefused("the times of the ID token are no numbers")
        if expires <= now - SKEW.total_seconds():
            raise IssuerRefused("the ID token has expired")
        age = now - issued
        if not -SKEW.total_seconds() <= age <= TOKEN_AGE_MAX.total_seconds():
            raise IssuerRefused("the ID token was not issued just now; compare the clocks")
        if claims.get("nonce") != nonce:
            raise IssuerRefused("the ID token is for another request")
        audience = claims["aud"]
        is_shared = isinstance(audience, list) and len(audience) > 1
        if claims.get("azp", issuer.client_id if not is_shared else None) != issuer.client_id:
            raise IssuerRefused("the ID token is for another client")
        if not isinstance(claims["sub"], str) or not 1 <= len(claims["sub"]) <= 255:
            raise IssuerRefused("the ID token names no user")

    async def _key(self, issuer: OidcIssuer, metadata: _Metadata, token: str) -> Any:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise IssuerRefused("the ID token cannot be read") from error
        if header.get("alg") not in ALGORITHMS:
            raise IssuerRefused("the ID token is not signed with a key of the issuer")
        for is_fresh in (False, True):
            if is_fresh:
                # The issuer may have changed its keys since they were read.
                self._keys.clear()
            keys = await self._keys.get_or_read(issuer.issuer, lambda: _key_set(metadata.jwks_uri))
            named = [each for each in keys.keys if each.key_id == header.get("kid")]
            if len(named) == 1:
                return named[0].key
        raise IssuerRefused("the issuer has no such key")

    async def _discovered(self, issuer: OidcIssuer) -> _Metadata:
        return await self._metadata.get_or_read(issuer.issuer, lambda: _discovery(issuer))


async def _discovery(issuer: OidcIssuer) -> _Metadata:
    address = f"{issuer.issuer.rstrip('/')}/.well-known/openid-configuration"
    document = await _fetched(address, {"Accept": "application/json"}, None)
    try:
        metadata = msgspec.convert(document, _Metadata)
    except msgspec.ValidationError as error:
        raise IssuerRefused(f"the metadata are not complete: {error}") from error
    if metadata.issuer != issuer.issuer:
        raise IssuerRefused("the metadata are of another issuer")
    if "S256" not in metadata.code_challenge_methods_supported:
        raise IssuerRefused("the issuer has no PKCE with S256")
    endpoints = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
    # Browsers follow the last one, so it must be an address of the web as well.
    for endpoint in (*endpoints, metadata.end_session_endpoint or issuer.issuer):
        if not is_endpoint_of(issuer.issuer, endpoint):
            raise IssuerRefused("an endpoint of the issuer has no https address")
    return metadata


def is_endpoint_of(issuer: str, endpoint: str) -> bool:
    """Return whether an issuer may have an endpoint: over TLS, or on the machine of both.

    An issuer elsewhere must not make the gateway call services of its own machine.
    """
    if not is_safe_address(endpoint):
        return False
    return urlsplit(endpoint).scheme == "https" or urlsplit(issuer).scheme == "http"


async def _key_set(address: str) -> jwt.PyJWKSet:
    document = await _fetched(address, {"Accept": "application/json"}, None)
    try:
        return jwt.PyJWKSet.from_dict(document)
    except jwt.PyJWTError as error:
        raise IssuerRefused(f"the keys of the issuer cannot be read: {error}") from error


async def _fetched(address: str, headers: Mapping[str, str], body: bytes | None) -> dict[str, Any]:
    """Return a JSON document of an issuer; redirects are not followed."""
    try:
        async with asyncio.timeout(EXCHANGE_S_MAX), Connections() as connections:
            if body is None:
                answer = await connections.get(address, headers)
            else:
                answer = await connections.post(address, headers, body)
            try:
                content = await answer.read(DOCUMENT_BYTES_MAX)
            finally:
                answer.close()
    except (HttpError, OSError, TimeoutError) as error:
        raise IssuerUnavailable(str(error) or type(error).__name__) from error
    if answer.status >= 500:
        raise IssuerUnavailable(f"it answered {answer.status}")
    if answer.status != 200:
        raise IssuerRefused(f"it answered {answer.status}")
    try:
        document = json.loads(content)
    except ValueError as error:
        raise IssuerRefused("it answered with something that is not JSON") from error
    if not isinstance(document, dict):
        raise IssuerRefused("it answered with something that is no object")
    return document


def _basic(issuer: OidcIssuer) -> str:
    """Return the credential of a client (RFC 6749, 2.3.1: both parts are encoded first)."""
    pair = f"{quote(issuer.client_id, safe='')}:{quote(issuer.client_secret, safe='')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _with_query(address: str, query: Mapping[str, str]) -> str:
    joint = "&" if urlsplit(address).query else "?"
    return f"{address}{joint}{urlencode(query)}"


def is_safe_address(address: str) -> bool:
    """Return whether an address is served over TLS, or is on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(host)
    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    return parts.scheme == "http" and is_local
