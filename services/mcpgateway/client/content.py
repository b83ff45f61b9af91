"""What a call brings, as parts that keep the server's order, and how much of it is kept.

Parts are msgspec structs, not dataclasses, because the journal stores them as MessagePack and
only tagged structs come back from there as what they were.
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
    """A picture or sound."""

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
    """Something this version does not know.

    Attributes:
        name: What the server calls it.
    """

    name: str


Part = TextPart | BlobPart | ResourcePart | LinkPart | StructuredPart | UnknownPart


class TooLarge(Exception):
    """Parts that cannot be cut to the limit, because they are not text."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What the tool itself answered."""

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
    """Return `parts` within `bytes_max` and `PARTS_MAX`, the middle of long texts cut out.

    Raises:
        TooLarge: What is not text is too large by itself.
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
    # The longest text gives first, so that short ones stay whole.
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
    """Return the parts as the journal stores them."""
    return _encoder.encode(parts)


def decode_parts(text: bytes) -> tuple[Part, ...]:
    """Return the parts that `packed` wrote."""
    return _decoder.decode(text)
