"""The parts of a call's result in the server's order, and their truncation.

Parts are msgspec structs, not dataclasses, because the journal stores them as MessagePack and only
tagged structs can be decoded to their types.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

PARTS_MAX: Final = 256
CUT_MARK: Final = "\n[... the middle was cut ...]\n"


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """Plain text without NUL."""

    text: str
    is_truncated: bool = False


class BlobPart(msgspec.Struct, frozen=True, tag="blob"):
    """An image or audio."""

    kind: Literal["image", "audio"]
    media_type: str
    data: bytes


class ResourcePart(msgspec.Struct, frozen=True, tag="resource"):
    """A resource with its content."""

    uri: str
    media_type: str
    body: bytes
    is_text: bool


class LinkPart(msgspec.Struct, frozen=True, tag="link"):
    """A resource by reference."""

    uri: str
    name: str
    description: str
    media_type: str


class StructuredPart(msgspec.Struct, frozen=True, tag="structured"):
    """The structured result as JSON."""

    json: bytes


class UnknownPart(msgspec.Struct, frozen=True, tag="unknown"):
    """Content of a type that this version does not support.

    Attributes:
        name: The server's name of the type.
    """

    name: str


Part = TextPart | BlobPart | ResourcePart | LinkPart | StructuredPart | UnknownPart


class TooLarge(Exception):
    """Parts that cannot be cut to the limit, because they are not text."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The response of the tool itself."""

    is_error: bool
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        """Return the bytes of all bodies."""
        return sum(len(body_of(part)) for part in self.parts)


def body_of(part: Part) -> bytes:
    """Return the part's body; links and unknown parts have none."""
    match part:
        case TextPart(text):
            return text.encode()
        case BlobPart(data=data):
            return data
        case ResourcePart(body=body):
            return body
        case StructuredPart(json):
            return json
        case LinkPart() | UnknownPart():
            return b""


def truncated(parts: Sequence[Part], bytes_max: int) -> tuple[Part, ...]:
    """Return `parts` within `bytes_max` and `PARTS_MAX`, with the middle of long texts removed.

    Raises:
        TooLarge: The parts that are not text are too large by themselves.
    """
    if len(parts) > PARTS_MAX:
        cut = len(parts) - PARTS_MAX + 1
        note = TextPart(f"[{cut} more parts were cut]", is_truncated=True)
        parts = (*parts[: PARTS_MAX - 1], note)
    sizes = [len(body_of(part)) for part in parts]
    excess = sum(sizes) - bytes_max
    if excess <= 0:
        return tuple(parts)
    fitting = list(parts)
    # The longest text is cut first, so that short ones stay complete.
    for index in sorted(range(len(parts)), key=sizes.__getitem__, reverse=True):
        part = parts[index]
        if excess > 0 and isinstance(part, TextPart):
            fitting[index] = _cut(part, max(0, sizes[index] - excess))
            excess -= sizes[index] - len(body_of(fitting[index]))
    if excess > 0:
        raise TooLarge
    return tuple(fitting)


def _cut(part: TextPart, bytes_max: int) -> TextPart:
    text = part.text.encode()
    room = bytes_max - len(CUT_MARK)
    if room <= 0:
        return TextPart("", is_truncated=True)
    head, tail = text[: room - room // 2], text[len(text) - room // 2 :]
    kept = head.decode(errors="ignore") + CUT_MARK + tail.decode(errors="ignore")
    return TextPart(kept, is_truncated=True)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[Part, ...])


def encode_parts(parts: Sequence[Part]) -> bytes:
    """Encode the parts as stored in the journal."""
    return _encoder.encode(parts)


def decode_parts(text: bytes) -> tuple[Part, ...]:
    """Decode the parts that `encode_parts` encoded."""
    return _decoder.decode(text)
