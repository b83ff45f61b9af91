"""The claims of a token and their encoding."""

from enum import StrEnum
from typing import Annotated

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from parley.identity.caller import Role, ServiceName
from parley.identity.errors import RefusalReason, Unauthenticated

ALGORITHM = "EdDSA"
TOKEN_CHARACTERS_MAX = 8192

_JWS = jwt.PyJWS(algorithms=[ALGORITHM])

# Far below the largest datetime, so that no claim overflows it.
_Instant = Annotated[int, msgspec.Meta(ge=0, lt=2**34)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class TokenKind(StrEnum):
    """The two kinds of token."""

    CALL = "call"
    SERVICE = "service"


class Claims(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The payload of a token, in the registered names of JWT where there is one."""

    iss: ServiceName
    aud: tuple[str, ...]
    iat: _Instant
    exp: _Instant
    typ: TokenKind
    sub: _Text | None = None
    role: Role | None = None
    scopes: tuple[str, ...] = ()
    jti: _Text | None = None
    name: _Text | None = None


def encode(claims: Claims, *, kid: str, key: Ed25519PrivateKey) -> str:
    """Sign `claims` as a compact JWT."""
    return _JWS.encode(msgspec.json.encode(claims), key, ALGORITHM, headers={"kid": kid})


def read_kid(text: str) -> str:
    """Return the key id in the header of `text`, which is not verified yet.

    Raises:
        Unauthenticated: `text` is not a token, has no key id, or uses another algorithm.
    """
    if len(text) > TOKEN_CHARACTERS_MAX:
        raise Unauthenticated(RefusalReason.TOKEN_MALFORMED)
    try:
        header = _JWS.get_unverified_header(text)
    except (jwt.PyJWTError, ValueError):
        raise Unauthenticated(RefusalReason.TOKEN_MALFORMED) from None
    if header.get("alg") != ALGORITHM:
        raise Unauthenticated(RefusalReason.TOKEN_ALGORITHM)
    kid = header.get("kid")
    if not isinstance(kid, str) or not kid:
        raise Unauthenticated(RefusalReason.TOKEN_MALFORMED)
    return kid


def decode(text: str, *, key: Ed25519PublicKey) -> Claims:
    """Verify the signature of `text` with `key` and return its claims.

    Raises:
        Unauthenticated: The signature is not by `key`, or the payload is not that of a token.
    """
    try:
        payload = _JWS.decode(text, key, algorithms=[ALGORITHM])
        return msgspec.json.decode(payload, type=Claims)
    except jwt.InvalidSignatureError:
        raise Unauthenticated(RefusalReason.TOKEN_SIGNATURE) from None
    except (jwt.PyJWTError, ValueError):
        raise Unauthenticated(RefusalReason.TOKEN_MALFORMED) from None
