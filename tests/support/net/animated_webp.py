"""Joins pictures in the WebP format to one that moves."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADER_BYTES = 12
CHUNK_HEADER_BYTES = 8
HAS_ANIMATION = 0x02
#: The chunks that hold the picture itself; the others describe it.
PICTURE = (b"ALPH", b"VP8 ", b"VP8L")
#: Opaque white, and without end.
LOOP = struct.pack("<IH", 0xFFFFFFFF, 0)


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture in the WebP format, and how long it is shown."""

    picture: bytes
    shown_ms: int


def animation(frames: Sequence[Frame], width: int, height: int) -> bytes:
    """Return the frames, all of this size, as one file."""
    size = _24(width - 1) + _24(height - 1)
    body = _chunk(b"VP8X", struct.pack("<I", HAS_ANIMATION) + size) + _chunk(b"ANIM", LOOP)
    for frame in frames:
        place = _24(0) + _24(0) + size + _24(frame.shown_ms) + b"\0"
        picture = b"".join(
            _chunk(name, data) for name, data in _chunks(frame.picture) if name in PICTURE
        )
        body += _chunk(b"ANMF", place + picture)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def thinned(frames: Sequence[Frame], bytes_max: int) -> list[Frame]:
    """Return fewer frames, as many as fit, each shown as long as those that it stands for."""
    kept = list(frames)
    while len(kept) > 1 and sum(len(each.picture) for each in kept) > bytes_max:
        # The one that is shown shortest tells least; its time goes to the one before.
        place = min(range(1, len(kept)), key=lambda each: kept[each].shown_ms)
        before = kept[place - 1]
        kept[place - 1] = Frame(before.picture, before.shown_ms + kept[place].shown_ms)
        del kept[place]
    return kept


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = HEADER_BYTES
    while place < len(picture):
        name, size = struct.unpack_from("<4sI", picture, place)
        begin = place + CHUNK_HEADER_BYTES
        yield name, picture[begin : begin + size]
        place = begin + size + size % 2


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def _24(number: int) -> bytes:
    return number.to_bytes(3, "little")
