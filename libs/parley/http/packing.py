"""Decompression of bodies that are compressed although it was not requested."""

import zlib
from collections.abc import Callable

from parley.http.errors import AnswerMalformed

# The limit for the bytes of one read; text is compressed to a tenth, seldom to a thirtieth.
UNPACKED_BYTES_MAX = 4 * 1024 * 1024

Unpack = Callable[[bytes], bytes]

_READABLE = frozenset({"gzip", "x-gzip", "deflate"})
_UNREADABLE = frozenset({"br", "compress", "x-compress", "zstd"})


def unpacking(encoding: str) -> Unpack | None:
    """Return the function that decompresses the pieces of a body; None if it is not compressed.

    Unknown values mean that there is no compression: servers send several, such as "none".

    Raises:
        AnswerMalformed: the encoding is not supported.
    """
    name = encoding.strip().lower()
    if name in _UNREADABLE:
        raise AnswerMalformed("the answer is compressed although the request did not accept that")
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
