"""Signing tokens: the key of a service, and the signer that uses it."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from parley.clock import Clock
from parley.files import FollowedFile, write_atomically
from parley.identity.caller import ServiceName, User
from parley.identity.claims import Claims, TokenKind, encode
from parley.identity.errors import SigningKeyUnreadable

CALL_TOKEN_LIFETIME_S = 60
CALL_TOKEN_REUSE_MARGIN_S = 15
CACHED_CALL_TOKENS_MAX = 4096

# toolrunner runs hostile code, so no long-lived token is valid there or sent to it.
SERVICE_TOKEN_AUDIENCES = (ServiceName.GATEWAY, ServiceName.CHATD, ServiceName.MCPGATEWAY)


def key_id(public: bytes) -> str:
    """Return the id of the key with these raw public bytes; equal keys have equal ids."""
    return hashlib.sha256(public).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An Ed25519 key pair and its id."""

    private: Ed25519PrivateKey = field(repr=False, compare=False)
    public: bytes
    kid: str

    @classmethod
    def of(cls, private: Ed25519PrivateKey) -> "SigningKey":
        """Return a key pair whose id is derived from its public key."""
        public = private.public_key().public_bytes_raw()
        return cls(private=private, public=public, kid=key_id(public))

    @classmethod
    def generate(cls) -> "SigningKey":
        """Make a new key pair."""
        return cls.of(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path) -> "SigningKey":
        """Read a key that `save` wrote.

        Raises:
            SigningKeyUnreadable: The file is missing or holds no Ed25519 key.
        """
        try:
            private = load_pem_private_key(path.read_bytes(), password=None)
        except OSError as error:
            raise SigningKeyUnreadable(path, error.strerror or "cannot be read") from error
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise SigningKeyUnreadable(path, "is not an unencrypted PEM private key") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise SigningKeyUnreadable(path, "is not an Ed25519 key")
        return cls.of(private)

    def save(self, path: Path) -> None:
        """Write the private key as PEM that only its owner can read."""
        pem = self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_atomically(path, pem)


#: A key, or the file of a key that is replaced while a process runs.
SigningKeySource = SigningKey | FollowedFile[SigningKey]


def followed_signing_key(path: Path) -> FollowedFile[SigningKey]:
    """Return the key in a file, as it is whenever something is signed.

    Raises:
        SigningKeyUnreadable: The file is missing or holds no Ed25519 key.
    """
    return FollowedFile(path, SigningKey.load)


def current_key(source: SigningKeySource) -> SigningKey:
    """Return the key to sign with now."""
    return source if isinstance(source, SigningKey) else source.current


class _Reused(NamedTuple):
    """A call token, and the interval of its signer's clock in which it is reused."""

    from_at: datetime
    until_at: datetime
    text: str


class Signer:
    """Signs tokens for one service.

    A rotation trusts the new key first, replaces the file of the key then, and retires the old one
    when no token of it is used any more.
    """

    def __init__(self, service: ServiceName, key: SigningKeySource, clock: Clock) -> None:
        self.service = service
        self._key = key
        self._clock = clock
        # All call tokens have the same lifetime, so the oldest entry is also the first to expire.
        self._call_tokens: dict[tuple[ServiceName, User | None, int], _Reused] = {}

    @property
    def key_id(self) -> str:
        """The id of the key."""
        return current_key(self._key).kid

    def call_token(self, audience: ServiceName, user: User | None = None, offset_s: int = 0) -> str:
        """Return a short-lived token for calls to `audience`, for `user` or for the service itself.

        The same token is returned until shortly before it expires.

        Args:
            audience: The service that is called.
            user: The user on whose behalf the call is made.
            offset_s: How far the clock that will check the token is ahead of this process's clock.
        """
        now = self._clock.now()
        cached = self._call_tokens.get((audience, user, offset_s))
        # After this clock was set back, a cached token would have been issued in the future.
        if cached is not None and cached.from_at <= now < cached.until_at:
            return cached.text
        signed_s = int(now.timestamp()) + offset_s
        claims = Claims(
            iss=self.service,
            aud=(audience,),
            iat=signed_s,
            exp=signed_s + CALL_TOKEN_LIFETIME_S,
            typ=TokenKind.CALL,
            sub=None if user is None else user.id,
            role=None if user is None else user.role,
        )
        key = current_key(self._key)
        token = encode(claims, kid=key.kid, key=key.private)
        self._call_tokens.pop((audience, user, offset_s), None)
        if len(self._call_tokens) >= CACHED_CALL_TOKENS_MAX:
            del self._call_tokens[next(iter(self._call_tokens))]
        until_at = now + timedelta(seconds=CALL_TOKEN_LIFETIME_S - CALL_TOKEN_REUSE_MARGIN_S)
        self._call_tokens[audience, user, offset_s] = _Reused(now, until_at, token)
        return token

    def offset_to(self, time_s: int) -> int:
        """Return by how many seconds a clock with this Unix time is ahead of this process's."""
        return time_s - int(self._clock.now().timestamp())

    def service_token(
        self,
        token_id: str,
        name: str,
        user: User,
        scopes: Iterable[str],
        expires_at: datetime,
    ) -> str:
        """Return a token for an internal caller that acts for `user` within `scopes`.

        It is valid until `expires_at` unless `token_id` is revoked. Guards accept it only from the
        gateway.
        """
        claims = Claims(
            iss=self.service,
            aud=SERVICE_TOKEN_AUDIENCES,
            iat=int(self._clock.now().timestamp()),
            exp=int(expires_at.timestamp()),
            typ=TokenKind.SERVICE,
            sub=user.id,
            role=user.role,
            scopes=tuple(sorted(set(scopes))),
            jti=token_id,
            name=name,
        )
        key = current_key(self._key)
        return encode(claims, kid=key.kid, key=key.private)
