"""Bodies that come packed although nobody asked for that."""

import zlib
from collections.abc import Callable

from parley.http.errors import AnswerMalformed

# What the bytes of one read may unpack to; text becomes a tenth by packing, seldom a thirtieth.
UNPACKED_BYTES_MAX = 4 * 1024 * 1024

Unpack = Callable[[bytes], bytes]

_READABLE = frozenset({"gzip", "x-gzip", "deflate"})
_UNREADABLE = frozenset({"br", "compress", "x-compress", "zstd"})


def unpacking(encoding: str) -> Unpack | None:
    """Return what unpacks the pieces of a body, None for one that is as it is.

    Servers that want nothing packed between them and us say so in many words, such as "none".

    Raises:
        AnswerMalformed: nobody here can unpack it.
    """
    name = encoding.strip().lower()
    if name in _UNREADABLE:
        raise AnswerMalformed("the answer is compressed although nobody asked for that")
    return _inflating() if name in _READABLE else None


def _inflating() -> Unpack:
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)

    def inflate(data: bytes) -> bytes:
        try:
            unpacked = inflater.decompress(data, UNPACKED_BYTES_MAX + 1)
        except zlib.error:
            raise AnswerMalformed("the compressed answer is damaged") from None
        if len(unpacked) > UNPACKED_BYTES_MAX:
            raise AnswerMalformed(f"{len(data)} bytes unpack to more than {UNPACKED_BYTES_MAX}")
        return unpacked

    return inflate
