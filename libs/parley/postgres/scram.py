"""The SCRAM verifier of a password, computed here so that no server log contains the password."""

import base64
import hashlib
import hmac
import secrets

ITERATIONS = 4096


def scram_verifier(password: str, *, salt: bytes | None = None) -> str:
    """Return the verifier that PostgreSQL stores for `password` under SCRAM-SHA-256.

    Args:
        password: ASCII only, so that no normalisation is needed.
        salt: Sixteen random bytes unless a test needs a known result.
    """
    salt = secrets.token_bytes(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ITERATIONS)
    stored_key = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    server_key = _keyed(salted, b"Server Key")
    return f"SCRAM-SHA-256${ITERATIONS}:{_text(salt)}${_text(stored_key)}:{_text(server_key)}"


def _keyed(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
