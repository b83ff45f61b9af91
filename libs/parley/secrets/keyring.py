"""The keys that seal and open secrets, and the file that processes follow."""

import base64
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from parley.files import FollowedFile, write_atomically
from parley.secrets.errors import KeyMissing, KeyringUnreadable, WrongKey

KEY_BYTES = 32

TokenBytes = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Key:
    """One 256-bit key and the id that sealed values refer to it by."""

    id: str
    material: bytes = field(repr=False)

    @classmethod
    def generate(cls, token_bytes: TokenBytes = os.urandom) -> "Key":
        """Make a new key, with an id from its fingerprint."""
        material = token_bytes(KEY_BYTES)
        return cls(_fingerprint(material)[:12], material)

    @property
    def fingerprint(self) -> str:
        """A value stored with the data to recognise this key; it does not reveal the key."""
        return _fingerprint(self.material)


class MasterKeys(Protocol):
    """The keys of a process: one seals, all open."""

    @property
    def writing_key(self) -> Key:
        """The key that seals."""
        ...

    def key(self, key_id: str) -> Key:
        """Return the key with that id.

        Raises:
            KeyMissing: There is none.
        """
        ...


class _Entry(msgspec.Struct):
    id: str
    key: str


class _Document(msgspec.Struct):
    keys: list[_Entry]


@dataclass(frozen=True, slots=True)
class Keyring:
    """Several keys: the first seals, all open."""

    keys: tuple[Key, ...]

    @classmethod
    def generate(cls, token_bytes: TokenBytes = os.urandom) -> "Keyring":
        """Make a keyring with one new key."""
        return cls((Key.generate(token_bytes),))

    @classmethod
    def load(cls, path: Path) -> "Keyring":
        """Read a keyring that `save` wrote.

        Raises:
            KeyringUnreadable: The file is missing or malformed.
        """
        try:
            document = msgspec.json.decode(path.read_bytes(), type=_Document)
            keys = tuple(_key(entry) for entry in document.keys)
        except OSError as error:
            raise KeyringUnreadable(path, error.strerror or "cannot be read") from error
        except ValueError as error:
            raise KeyringUnreadable(path, str(error)) from error
        if not keys:
            raise KeyringUnreadable(path, "holds no key")
        if len({key.id for key in keys}) != len(keys):
            raise KeyringUnreadable(path, "holds two keys of one id")
        return cls(keys)

    def save(self, path: Path) -> None:
        """Replace the file atomically and durably, readable by its owner only."""
        entries = [
            _Entry(key.id, base64.b64encode(key.material).decode("ascii")) for key in self.keys
        ]
        text = msgspec.json.format(msgspec.json.encode(_Document(entries)), indent=2) + b"\n"
        write_atomically(path, text)

    @property
    def writing_key(self) -> Key:
        """The key that seals."""
        return self.keys[0]

    def key(self, key_id: str) -> Key:
        """Return the key with that id.

        Raises:
            KeyMissing: There is none.
        """
        for key in self.keys:
            if key.id == key_id:
                return key
        raise KeyMissing(key_id)

    def with_readable_key(self, token_bytes: TokenBytes = os.urandom) -> "Keyring":
        """Return a keyring that opens with a new key, its last, and still seals with the first."""
        return Keyring((*self.keys, Key.generate(token_bytes)))

    def with_newest_first(self) -> "Keyring":
        """Return a keyring that seals with its last key."""
        return Keyring((self.keys[-1], *self.keys[:-1]))

    def without_old_keys(self) -> "Keyring":
        """Return a keyring with the key that seals, for when no value needs another one."""
        return Keyring((self.writing_key,))

    def continues(self, former: "Keyring") -> bool:
        """Return whether it has a key of `former`, as after each step of a rotation."""
        return any(key in former.keys for key in self.keys)

    def check(self, stored: Mapping[str, str]) -> None:
        """Compare the keys with the fingerprints by key id that the database holds.

        Raises:
            WrongKey: A key that the database was written with is missing or different.
        """
        ours = {key.id: key.fingerprint for key in self.keys}
        wrong = tuple(
            sorted(id_ for id_, fingerprint in stored.items() if ours.get(id_) != fingerprint)
        )
        if wrong:
            raise WrongKey(wrong)


class KeyringFile:
    """The keyring as its file has it now, so that keys are rotated while a process runs.

    Both sealing and opening look at the file first: a key that another process seals with is known
    here when its first value is read. A file without any key of those in use is ignored.

    Raises:
        KeyringUnreadable: The file is missing or malformed at the start.
    """

    def __init__(self, path: Path) -> None:
        self._file = FollowedFile(
            path, Keyring.load, accepts=lambda before, after: after.continues(before)
        )

    @property
    def current(self) -> Keyring:
        """The keyring, which does not change."""
        return self._file.current

    @property
    def writing_key(self) -> Key:
        """The key that seals."""
        return self.current.writing_key

    def key(self, key_id: str) -> Key:
        """Return the key with that id.

        Raises:
            KeyMissing: There is none.
        """
        return self.current.key(key_id)


def _fingerprint(material: bytes) -> str:
    return hmac.new(material, b"parley key fingerprint", hashlib.sha256).hexdigest()[:32]


def _key(entry: _Entry) -> Key:
    try:
        material = base64.b64decode(entry.key, validate=True)
    except ValueError:
        raise ValueError(f"key {entry.id} is not base64") from None
    if len(material) != KEY_BYTES or not entry.id:
        raise ValueError(f"key {entry.id!r} is not an id with {KEY_BYTES} bytes")
    return Key(entry.id, material)
