"""Time-based one-time passwords (RFC 6238) and recovery codes: pure functions."""

import base64
import hashlib
import hmac
import re
from typing import Final
from urllib.parse import quote

SECRET_BYTES: Final = 20
STEP_S: Final = 30
DIGITS: Final = 6
#: Clocks of phones differ: the codes of the steps before and after are accepted too.
STEPS_BESIDE: Final = 1
RECOVERY_CODES: Final = 10
RECOVERY_BYTES: Final = 10
ISSUER: Final = "Parley"

_CODE = re.compile(r"[0-9]{6}")


def code_at(secret: bytes, step: int) -> str:
    """Return the code of a time step."""
    # SHA-1 is what authenticator apps implement; as HMAC it is sound.
    digest = hmac.digest(secret, step.to_bytes(8, "big"), "sha1")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def step_at(timestamp: float) -> int:
    """Return the time step of a time in seconds since 1970."""
    return int(timestamp) // STEP_S


def matching_step(secret: bytes, code: str, now_step: int) -> int | None:
    """Return the step whose code was given, of those near now; None if there is none."""
    if not _CODE.fullmatch(code):
        return None
    for step in range(now_step - STEPS_BESIDE, now_step + STEPS_BESIDE + 1):
        if hmac.compare_digest(code_at(secret, step), code):
            return step
    return None


def base32(secret: bytes) -> str:
    """Return a secret as authenticator apps show it."""
    return base64.b32encode(secret).decode().rstrip("=")


def uri(secret: bytes, login: str, host: str) -> str:
    """Return the URI that apps read from a QR code."""
    label = quote(f"{ISSUER}:{login}@{host}")
    return f"otpauth://totp/{label}?secret={base32(secret)}&issuer={ISSUER}"


def recovery_code(random: bytes) -> str:
    """Return a recovery code, in groups that can be read."""
    text = base64.b32encode(random).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, len(text), 4))


def recovery_digest(code: str) -> bytes:
    """Return the stored digest of a recovery code, however it was typed."""
    plain = re.sub(r"[\s-]", "", code).lower()
    return hashlib.sha256(plain.encode()).digest()


def plain_code(code: str) -> str:
    """Return a code as it was typed, without blanks."""
    return re.sub(r"\s", "", code)
