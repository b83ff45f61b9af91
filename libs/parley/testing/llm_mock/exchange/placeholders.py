"""Placeholders in encoded bytes for the values that differ between answers.

Everything else in an answer depends on the model's name alone, so it is encoded once. A value is as
long as its placeholder, so that all lengths computed around it stay correct.
"""

from dataclasses import dataclass
from hashlib import blake2b

import msgspec

#: The placeholder of the answer's identity in a string; as bytes as long as an identity.
IDENTITY = "\ue000" * 8
IDENTITY_LENGTH = len(IDENTITY.encode())
NUMBER_LENGTH = 12
# No JSON text contains these bytes, so no text of a user can be taken for a placeholder.
INPUT = msgspec.Raw(b"\x01" * NUMBER_LENGTH)
PROMPT = msgspec.Raw(b"\x02" * NUMBER_LENGTH)
TOTAL = msgspec.Raw(b"\x03" * NUMBER_LENGTH)

STORED, NOT_STORED = "5", "0"
REASONED, NOT_REASONED = "7", "1"


@dataclass(frozen=True, slots=True)
class PlaceholderValues:
    """The values of the placeholders of one answer."""

    identity: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int

    def fill(self, prepared: bytes) -> bytes:
        """Return the bytes with every placeholder filled."""
        prompt_tokens = self.input_tokens + self.cached_tokens
        filled = prepared.replace(IDENTITY.encode(), self.identity.encode())
        if bytes(INPUT) in filled or bytes(PROMPT) in filled:
            filled = filled.replace(bytes(INPUT), _number(self.input_tokens))
            filled = filled.replace(bytes(PROMPT), _number(prompt_tokens))
            filled = filled.replace(bytes(TOTAL), _number(prompt_tokens + self.output_tokens))
        return filled


def identity_of(seed: int, number: int, *, is_stored: bool, is_reasoned: bool) -> str:
    """Return the identity of the answer to the request of this number.

    It encodes whether the provider stored the answer and whether it has reasoning: enough to
    validate an item that is sent back, without storing any.
    """
    marks = (STORED if is_stored else NOT_STORED) + (REASONED if is_reasoned else NOT_REASONED)
    digest = blake2b(f"{seed}/{number}".encode(), digest_size=IDENTITY_LENGTH // 2).hexdigest()
    return marks + digest[len(marks) :]


def _number(value: int) -> bytes:
    return str(value).rjust(NUMBER_LENGTH).encode()
