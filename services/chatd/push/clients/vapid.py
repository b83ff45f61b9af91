"""VAPID, RFC 8292: tokens by which push services recognise the sender of a notification."""

import base64
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import httpx2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from chatd.push.clients.encryption import CURVE, point_of

#: RFC 8292 allows 24 hours; clocks of push services differ.
TOKEN_FOR: Final = timedelta(hours=12)
_COORDINATE_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class VapidKey:
    """The key pair of the installation."""

    private_key: ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> "VapidKey":
        """Return a new key pair."""
        return cls(ec.generate_private_key(CURVE))

    @classmethod
    def load(cls, stored: bytes) -> "VapidKey":
        """Return a stored key pair.

        Raises:
            ValueError: It is not a private key of P-256.
        """
        key = load_der_private_key(stored, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != CURVE.name:
            raise ValueError("the stored VAPID key is not a private key of P-256")
        return cls(key)

    def stored(self) -> bytes:
        """Return the private key as it is stored, before it is encrypted."""
        return self.private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    @property
    def public_key(self) -> str:
        """Return the public key as browsers get it."""
        return base64url(point_of(self.private_key.public_key()))

    def authorization(self, endpoint: str, contact: str, now: datetime) -> str:
        """Return the header `Authorization` of a request to an endpoint.

        Args:
            endpoint: The endpoint; the token is valid for its origin only.
            contact: A `mailto:` or https URL of the operator; empty for none.
            now: The current time.
        """
        # Parsed as the request is, and without the default port, as an origin is written.
        url = httpx2.URL(endpoint)
        claims: dict[str, str | int] = {
            "aud": f"{url.scheme}://{url.netloc.decode('ascii')}",
            "exp": int((now + TOKEN_FOR).timestamp()),
        }
        if contact:
            claims["sub"] = contact
        signed = f"{_encoded({'typ': 'JWT', 'alg': 'ES256'})}.{_encoded(claims)}"
        der = self.private_key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        r, s = decode_dss_signature(der)
        signature = r.to_bytes(_COORDINATE_BYTES) + s.to_bytes(_COORDINATE_BYTES)
        return f"vapid t={signed}.{base64url(signature)}, k={self.public_key}"


def base64url(plain: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(plain).rstrip(b"=").decode()


def _encoded(value: dict[str, str] | dict[str, str | int]) -> str:
    return base64url(json.dumps(value, separators=(",", ":")).encode())
