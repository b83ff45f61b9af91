"""Encryption for one browser: the content coding `aes128gcm` of RFC 8188 with keys of RFC 8291."""

from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from chatd.push.domain.subscription import PushAddress

SALT_BYTES: Final = 16
AUTH_BYTES: Final = 16
POINT_BYTES: Final = 65
RECORD_BYTES: Final = 4096
_LAST_RECORD: Final = b"\x02"
_TAG_BYTES: Final = 16
#: The header is a salt, the size of a record, and the sender's point after its length.
_HEADER_BYTES: Final = SALT_BYTES + 4 + 1 + POINT_BYTES
#: Push services need not accept more than 4096 bytes in all.
PLAIN_BYTES_MAX: Final = RECORD_BYTES - _HEADER_BYTES - _TAG_BYTES - len(_LAST_RECORD)

CURVE: Final = ec.SECP256R1()


@dataclass(frozen=True, slots=True)
class OneTimeKeys:
    """What has to be new for each message.

    Attributes:
        private_key: A private key of P-256.
        salt: 16 random bytes.
    """

    private_key: ec.EllipticCurvePrivateKey
    salt: bytes


def encrypted(plain: bytes, address: PushAddress, keys: OneTimeKeys) -> bytes:
    """Return a body that only the browser of `address` can decrypt.

    Raises:
        ValueError: The text is too long for one record, or the key of the browser is no point.
    """
    if len(plain) > PLAIN_BYTES_MAX:
        raise ValueError(f"a message has at most {PLAIN_BYTES_MAX} bytes")
    browser_key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, address.public_key)
    sender_point = point_of(keys.private_key.public_key())
    shared = keys.private_key.exchange(ec.ECDH(), browser_key)
    info = b"WebPush: info\0" + address.public_key + sender_point
    secret = _derived(shared, salt=address.auth, info=info, length=32)
    key = _derived(secret, salt=keys.salt, info=b"Content-Encoding: aes128gcm\0", length=16)
    nonce = _derived(secret, salt=keys.salt, info=b"Content-Encoding: nonce\0", length=12)
    sealed = AESGCM(key).encrypt(nonce, plain + _LAST_RECORD, None)
    header = keys.salt + RECORD_BYTES.to_bytes(4) + bytes((len(sender_point),)) + sender_point
    return header + sealed


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    """Return a public key as an uncompressed point."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def is_point(encoded: bytes) -> bool:
    """Return whether bytes are an uncompressed point of the curve."""
    if len(encoded) != POINT_BYTES:
        return False
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(CURVE, encoded)
    except ValueError:
        return False
    return True


def _derived(secret: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)
