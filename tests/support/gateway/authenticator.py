"""An authenticator in software, which answers as a browser with passkeys does."""

import base64
import hashlib
import json
import os
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

USER_PRESENT = 0x01
USER_VERIFIED = 0x04
HAS_CREDENTIAL = 0x40


def encoded(data: bytes) -> str:
    """Return bytes as WebAuthn's JSON has them."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Authenticator:
    """One passkey; its attributes can be changed to lie.

    Attributes:
        origin: The page that the browser says it shows.
        host: The host that the passkey is bound to.
        flags: Whether the person was there and verified.
        sign_count: How often the key was used.
    """

    def __init__(self, origin: str, host: str) -> None:
        self.origin = origin
        self.host = host
        self.flags = USER_PRESENT | USER_VERIFIED
        self.sign_count = 0
        self.credential_id = os.urandom(16)
        self.key = ec.generate_private_key(ec.SECP256R1())

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """Answer navigator.credentials.create."""
        numbers = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1}
        cose |= {-2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}  # type: ignore[dict-item]
        size = len(self.credential_id).to_bytes(2, "big")
        credential = bytes(16) + size + self.credential_id + cbor2.dumps(cose)
        data = self._data(self.flags | HAS_CREDENTIAL) + credential
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client_data = self._client_data("webauthn.create", options)
        return self._credential(
            {"clientDataJSON": encoded(client_data), "attestationObject": encoded(attestation)}
        )

    def get(self, options: dict[str, Any]) -> dict[str, Any]:
        """Answer navigator.credentials.get."""
        self.sign_count += 1
        data, client_data = self._data(self.flags), self._client_data("webauthn.get", options)
        signed = data + hashlib.sha256(client_data).digest()
        return self._credential(
            {
                "clientDataJSON": encoded(client_data),
                "authenticatorData": encoded(data),
                "signature": encoded(self.key.sign(signed, ec.ECDSA(SHA256()))),
            }
        )

    def _data(self, flags: int) -> bytes:
        host = hashlib.sha256(self.host.encode()).digest()
        return host + bytes([flags]) + self.sign_count.to_bytes(4, "big")

    def _client_data(self, kind: str, options: dict[str, Any]) -> bytes:
        return json.dumps(
            {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        ).encode()

    def _credential(self, response: dict[str, str]) -> dict[str, Any]:
        name = encoded(self.credential_id)
        return {"id": name, "rawId": name, "type": "public-key", "response": response}
