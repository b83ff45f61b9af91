"""Sealing and opening single values of database rows.

A value is encrypted with a data key made for it alone; the data key is encrypted ("wrapped") with
the keyring's first key. Rotation therefore rewraps 32 bytes and never touches the value.

    version (1) | wrap nonce (12) | wrapped data key (32 + 16) | nonce (12) | value (n + 16)

The wrapping is bound to table, column, row and key id, the value to table, column and row: the
key's id changes when the data key is rewrapped, and a value bound to it could not stay as it is.
A value cannot be decrypted without its data key, so the binding of the wrapping holds for both.
"""

import os
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from parley.secrets.errors import CiphertextTampered, CiphertextTruncated
from parley.secrets.keyring import KEY_BYTES, MasterKeys, TokenBytes

VERSION = b"\x01"
NONCE_BYTES = 12
TAG_BYTES = 16

_VALUE_AT = len(VERSION) + NONCE_BYTES + KEY_BYTES + TAG_BYTES
_BYTES_MIN = _VALUE_AT + NONCE_BYTES + TAG_BYTES


@dataclass(frozen=True, slots=True)
class Sealed:
    """The stored form of a value: the ciphertext, and the id of the key that decrypts it."""

    ciphertext: bytes = field(repr=False)
    key_id: str


@dataclass(frozen=True, slots=True)
class _Place:
    table: str
    column: str
    row_id: str

    def binding(self, *more: str) -> bytes:
        """Return the cell as associated data; lengths distinguish `a|b, c` from `a, b|c`."""
        parts = (self.table, self.column, self.row_id, *more)
        return "|".join(f"{len(part)}:{part}" for part in parts).encode()


class SecretBox:
    """Encrypts values so that they can be decrypted only in their own row and with the keyring."""

    def __init__(self, keyring: MasterKeys, token_bytes: TokenBytes = os.urandom) -> None:
        self._keyring = keyring
        self._token_bytes = token_bytes

    def seal(self, plain: bytes, *, table: str, column: str, row_id: str) -> Sealed:
        """Encrypt `plain` for one cell of one row."""
        place = _Place(table, column, row_id)
        data_key = self._token_bytes(KEY_BYTES)
        nonce = self._token_bytes(NONCE_BYTES)
        value = nonce + AESGCM(data_key).encrypt(nonce, plain, place.binding())
        return self._wrap(data_key, value, place)

    def open(self, sealed: Sealed, *, table: str, column: str, row_id: str) -> bytes:
        """Decrypt a value of this cell.

        Raises:
            KeyMissing: The keyring does not hold the key.
            CiphertextTruncated: The ciphertext is too short or of an unknown form.
            CiphertextTampered: It was changed or belongs to another cell.
        """
        place = _Place(table, column, row_id)
        data_key, value = self._unwrap(sealed, place)
        return _decrypt(data_key, value, place.binding(), place)

    def rewrap(self, sealed: Sealed, *, table: str, column: str, row_id: str) -> Sealed:
        """Return the value wrapped with the keyring's first key; unchanged if it already is.

        Raises:
            KeyMissing: The keyring does not hold the old key.
            CiphertextTruncated: The ciphertext is too short or of an unknown form.
            CiphertextTampered: Its wrapping was changed or belongs to another cell.
        """
        if not self.needs_rewrap(sealed):
            return sealed
        place = _Place(table, column, row_id)
        data_key, value = self._unwrap(sealed, place)
        return self._wrap(data_key, value, place)

    def needs_rewrap(self, sealed: Sealed) -> bool:
        """Return whether the value is wrapped with another key than the keyring's first one."""
        return sealed.key_id != self._keyring.writing_key.id

    def _wrap(self, data_key: bytes, value: bytes, place: _Place) -> Sealed:
        key = self._keyring.writing_key
        nonce = self._token_bytes(NONCE_BYTES)
        wrapped = AESGCM(key.material).encrypt(nonce, data_key, place.binding(key.id))
        return Sealed(VERSION + nonce + wrapped + value, key.id)

    def _unwrap(self, sealed: Sealed, place: _Place) -> tuple[bytes, bytes]:
        key = self._keyring.key(sealed.key_id)
        text = sealed.ciphertext
        if len(text) < _BYTES_MIN or not text.startswith(VERSION):
            raise CiphertextTruncated(table=place.table, column=place.column, row_id=place.row_id)
        wrapped = text[len(VERSION) : _VALUE_AT]
        data_key = _decrypt(key.material, wrapped, place.binding(key.id), place)
        return data_key, text[_VALUE_AT:]


def _decrypt(key: bytes, nonce_and_text: bytes, binding: bytes, place: _Place) -> bytes:
    nonce, text = nonce_and_text[:NONCE_BYTES], nonce_and_text[NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, text, binding)
    except InvalidTag:
        raise CiphertextTampered(
            table=place.table, column=place.column, row_id=place.row_id
        ) from None
