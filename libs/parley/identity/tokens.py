"""Making tokens: the key a service signs with, and the signer that holds it."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from parley.clock import Clock
from parley.files import write_atomically
from parley.identity.caller import User
from parley.identity.claims import Claims, TokenKind, encode
from parley.identity.errors import SigningKeyUnreadable
from parley.identity.names import ServiceName

CALL_TOKEN_LIFETIME_S = 60
CALL_TOKEN_REUSE_MARGIN_S = 15
CACHED_CALL_TOKENS_MAX = 4096

# toolrunner runs hostile code, so no long-lived token is ever good there or shown to it.
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
        """Name a key pair by its public half."""
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


class Signer:
    """Signs tokens in the name of one service.

    Rotation is a new signer: first trust the new key, then sign with it, then retire the old one.
    """

    def __init__(self, service: ServiceName, key: SigningKey, clock: Clock) -> None:
        self.service = service
        self._key = key
        self._clock = clock
        # All call tokens live equally long, so the oldest entry is also the first to expire.
        self._call_tokens: dict[tuple[ServiceName, User | None], tuple[float, str]] = {}

    def call_token(self, audience: ServiceName, user: User | None = None) -> str:
        """Return a short-lived token for calls to `audience`, for `user` or on one's own behalf.

        The same token is returned until shortly before it expires.
        """
        now_s = self._clock.now().timestamp()
        cached = self._call_tokens.get((audience, user))
        if cached is not None and now_s < cached[0]:
            return cached[1]
        expires_s = int(now_s) + CALL_TOKEN_LIFETIME_S
        claims = Claims(
            iss=self.service,
            aud=(audience,),
            iat=int(now_s),
            exp=expires_s,
            typ=TokenKind.CALL,
            sub=None if user is None else user.id,
            role=None if user is None else user.role,
        )
        token = encode(claims, kid=self._key.kid, key=self._key.private)
        self._call_tokens.pop((audience, user), None)
        if len(self._call_tokens) >= CACHED_CALL_TOKENS_MAX:
            del self._call_tokens[next(iter(self._call_tokens))]
        self._call_tokens[audience, user] = (expires_s - CALL_TOKEN_REUSE_MARGIN_S, token)
        return token

    def service_token(
        self,
        token_id: str,
        name: str,
        user: User,
        scopes: Iterable[str],
        expires_at: datetime,
    ) -> str:
        """Return a token for an internal caller that acts for `user` within `scopes`.

        It is good until `expires_at` unless `token_id` is revoked. Guards accept only the
        gateway's.
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
        return encode(claims, kid=self._key.kid, key=self._key.private)
