"""argon2id with its parameters, and what a hashing process is asked."""

from typing import Final, assert_never

import msgspec
from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

#: The least that OWASP advises for argon2id.
MEMORY_KIB: Final = 19 * 1024
PASSES: Final = 2
LANES: Final = 1
HASHER: Final = PasswordHasher(
    time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES, type=Type.ID
)


class Hash(msgspec.Struct, frozen=True, tag="hash"):
    """Asks for a new hash of a password."""

    password: str


class Verify(msgspec.Struct, frozen=True, tag="verify"):
    """Asks whether a password has a hash."""

    password: str
    stored: str


Request = Hash | Verify
#: A new hash, or whether a password has one.
Answer = str | bool


def answer(request: Request) -> Answer:
    """Hash or verify a password."""
    match request:
        case Hash(password):
            return HASHER.hash(password)
        case Verify(password, stored):
            try:
                return HASHER.verify(stored, password)
            except (VerificationError, InvalidHashError):
                return False
        case _:
            assert_never(request)
