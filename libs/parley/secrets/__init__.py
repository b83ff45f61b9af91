"""Encryption of secrets at rest: values bound to one row, with keys outside the database."""

from parley.secrets.box import Sealed, SecretBox
from parley.secrets.errors import (
    CiphertextDamaged,
    CiphertextTampered,
    CiphertextTruncated,
    KeyMissing,
    KeyringUnreadable,
    SecretsError,
    WrongKey,
)
from parley.secrets.keyring import Key, Keyring, KeyringFile, MasterKeys, TokenBytes

__all__ = [
    "CiphertextDamaged",
    "CiphertextTampered",
    "CiphertextTruncated",
    "Key",
    "KeyMissing",
    "Keyring",
    "KeyringFile",
    "KeyringUnreadable",
    "MasterKeys",
    "Sealed",
    "SecretBox",
    "SecretsError",
    "TokenBytes",
    "WrongKey",
]
