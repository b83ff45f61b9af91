"""API keys: the text given to a user, and the digest that is stored."""

import hashlib
import hmac
import os
import string
from collections.abc import Callable
from dataclasses import dataclass, field

from parley.identity.errors import MalformedApiKey

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
PREFIX = "pk"
ID_CHARACTERS = 8
SECRET_BYTES = 32
SECRET_CHARACTERS = 43

_ALPHABET = frozenset(ALPHABET)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """`pk_<id>_<secret>`: the id selects the row, the secret authenticates.

    The secret has 256 random bits, so a plain SHA-256 of it is safe to store.
    """

    id: str
    secret: str = field(repr=False)

    @classmethod
    def generate(cls, token_bytes: Callable[[int], bytes] = os.urandom) -> "ApiKey":
        """Make a new key."""
        return cls(
            id=_base62(token_bytes(ID_CHARACTERS), ID_CHARACTERS),
            secret=_base62(token_bytes(SECRET_BYTES), SECRET_CHARACTERS),
        )

    @classmethod
    def parse(cls, text: str) -> "ApiKey":
        """Read a key as `reveal` wrote it.

        Raises:
            MalformedApiKey: `text` cannot be a key; the problem does not repeat it.
        """
        prefix, _, rest = text.partition("_")
        id_, separator, secret = rest.partition("_")
        if prefix != PREFIX or not separator:
            raise MalformedApiKey(f"it does not look like {PREFIX}_ID_SECRET")
        if len(id_) != ID_CHARACTERS or len(secret) != SECRET_CHARACTERS:
            raise MalformedApiKey("it is not as long as a key is; was it cut off?")
        if not _ALPHABET.issuperset(id_ + secret):
            raise MalformedApiKey("it holds characters that no key has")
        return cls(id_, secret)

    def reveal(self) -> str:
        """Return the whole key, to be displayed once."""
        return f"{PREFIX}_{self.id}_{self.secret}"

    def digest(self) -> bytes:
        """Return the digest of the secret, which is stored in its place."""
        return hashlib.sha256(self.secret.encode("ascii")).digest()

    def matches(self, digest: bytes) -> bool:
        """Return whether `digest` is that of this key; compares in constant time."""
        return hmac.compare_digest(self.digest(), digest)


def _base62(chance: bytes, characters: int) -> str:
    """Return the last `characters` base-62 digits of `chance` read as a number."""
    number = int.from_bytes(chance, "big")
    digits = []
    for _ in range(characters):
        number, digit = divmod(number, 62)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
