"""Trusted signing keys: the trust file, how it is changed, and how a process reads it."""

import base64
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from parley.clock import Clock
from parley.files import write_atomically
from parley.identity.caller import ServiceName
from parley.identity.errors import TrustFileUnreadable, UnknownKey
from parley.identity.tokens import SigningKey, key_id

UNKNOWN_KEY_REREAD_S = 1.0
ROUTINE_REREAD_S = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A service's public key, and when it was or will be retired."""

    kid: str
    service: ServiceName
    public: bytes
    retired_at: datetime | None = None

    @classmethod
    def of(cls, service: ServiceName, key: SigningKey) -> "TrustedKey":
        """Return `key` as a trusted key of `service`."""
        return cls(kid=key.kid, service=service, public=key.public)

    def is_accepted(self, now: datetime) -> bool:
        """Return whether signatures of this key are accepted at `now`."""
        return self.retired_at is None or now < self.retired_at

    def verifier(self) -> Ed25519PublicKey:
        """Return the key in the form that verifies signatures."""
        return Ed25519PublicKey.from_public_bytes(self.public)


class _Entry(msgspec.Struct, omit_defaults=True):
    kid: str
    service: ServiceName
    public: str
    retired_at: datetime | None = None


class _Document(msgspec.Struct):
    keys: list[_Entry]


class TrustFile:
    """The public keys of every service in one JSON file, which holds no secret.

    A change reads, edits and replaces the file; only one process at a time may do it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[TrustedKey, ...]:
        """Return all keys, retired ones included.

        Raises:
            TrustFileUnreadable: The file is missing or malformed.
        """
        try:
            document = msgspec.json.decode(self.path.read_bytes(), type=_Document)
            return tuple(_trusted(entry) for entry in document.keys)
        except OSError as error:
            raise TrustFileUnreadable(self.path, error.strerror or "cannot be read") from error
        except ValueError as error:
            raise TrustFileUnreadable(self.path, str(error)) from error

    def write(self, keys: Iterable[TrustedKey]) -> None:
        """Replace all keys."""
        document = _Document(keys=[_entry(key) for key in keys])
        text = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
        write_atomically(self.path, text, mode=0o644)

    def add_key(self, service: ServiceName, key: SigningKey) -> TrustedKey:
        """Trust `key` as a key of `service`, in addition to those it already has.

        Raises:
            TrustFileUnreadable: The file exists and is malformed.
        """
        added = TrustedKey.of(service, key)
        known = self.read() if self.path.exists() else ()
        self.write((*(other for other in known if other.kid != added.kid), added))
        return added

    def retire_key(self, kid: str, *, now: datetime, overlap_s: float) -> None:
        """Accept `kid` for `overlap_s` more seconds, so that tokens already issued stay valid.

        A token that lives longer than the overlap becomes invalid early.

        Raises:
            TrustFileUnreadable: The file is missing or malformed.
            UnknownKey: The file has no such key.
        """
        keys = self.read()
        if kid not in {key.kid for key in keys}:
            raise UnknownKey(kid)
        end = now + timedelta(seconds=overlap_s)
        self.write(replace(key, retired_at=end) if key.kid == kid else key for key in keys)

    def forget_retired(self, *, now: datetime) -> tuple[TrustedKey, ...]:
        """Remove the keys that are no longer accepted and return them."""
        keys = self.read()
        dropped = tuple(key for key in keys if not key.is_accepted(now))
        if dropped:
            self.write(key for key in keys if key.is_accepted(now))
        return dropped


class Trust:
    """The trust file as this process last read it.

    An unknown key id makes it read the file again, at most once a second, so that a rotation needs
    no restart and forged key ids cause no disk load. It is also read again every half minute, so
    that a retirement takes effect.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        """Read the file once.

        Raises:
            TrustFileUnreadable: The file is missing or malformed.
        """
        self._file = TrustFile(path)
        self._clock = clock
        self._keys = {key.kid: key for key in self._file.read()}
        self._read_at_s = clock.monotonic()

    def find(self, kid: str) -> TrustedKey | None:
        """Return the key if its signatures are accepted now."""
        age_s = self._clock.monotonic() - self._read_at_s
        if age_s >= ROUTINE_REREAD_S or (kid not in self._keys and age_s >= UNKNOWN_KEY_REREAD_S):
            self._reread()
        key = self._keys.get(kid)
        return key if key is not None and key.is_accepted(self._clock.now()) else None

    def _reread(self) -> None:
        self._read_at_s = self._clock.monotonic()
        try:
            self._keys = {key.kid: key for key in self._file.read()}
        except TrustFileUnreadable as error:
            _log.warning("keeping the keys already trusted: %s", error)


def _trusted(entry: _Entry) -> TrustedKey:
    public = base64.b64decode(entry.public, validate=True)
    if len(public) != 32 or key_id(public) != entry.kid:
        raise ValueError(f"key {entry.kid} is not what its id says")
    if entry.retired_at is not None and entry.retired_at.tzinfo is None:
        raise ValueError(f"key {entry.kid} retires at a time without a time zone")
    return TrustedKey(entry.kid, entry.service, public, entry.retired_at)


def _entry(key: TrustedKey) -> _Entry:
    public = base64.b64encode(key.public).decode("ascii")
    return _Entry(key.kid, key.service, public, key.retired_at)
