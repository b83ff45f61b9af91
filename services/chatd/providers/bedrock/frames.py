"""The framing of AWS event streams: converts received bytes into the payloads of frames.

A frame is its length and the length of its headers, a checksum of those two, the headers, the
payload, and a checksum of all of it. A frame that reports an exception ends the stream.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from chatd.providers.wire import Failure, ProviderFailed

FRAME_BYTES_MAX = 16 * 1024 * 1024
BODY_BYTES_MAX = 64 * 1024

_PRELUDE = struct.Struct(">III")
_CHECKSUM = struct.Struct(">I")
_FRAME_BYTES_MIN = _PRELUDE.size + _CHECKSUM.size

# Sizes of header values by type; bytes and strings have a length prefix.
_VALUE_BYTES: Mapping[int, int] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES_TYPE, _TEXT_TYPE = 6, 7

STATUS_BY_EXCEPTION: Mapping[str, int] = {
    "accessdeniedexception": 403,
    "internalserverexception": 500,
    "modelerrorexception": 424,
    "modelnotreadyexception": 429,
    "modelstreamerrorexception": 424,
    "modeltimeoutexception": 408,
    "resourcenotfoundexception": 404,
    "servicequotaexceededexception": 400,
    "serviceunavailableexception": 503,
    "throttlingexception": 429,
    "validationexception": 400,
}


class _Exception(msgspec.Struct):
    message: str = ""
    original_status_code: int = msgspec.field(name="originalStatusCode", default=0)
    original_message: str = msgspec.field(name="originalMessage", default="")


class EventStreamFrames:
    """Splits a stream into frames; raises only `ProviderFailed`."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Yield the payloads that are complete with these bytes.

        Raises:
            ProviderFailed: A frame is damaged or too large, or reports an exception.
        """
        self._buffer += chunk
        while (frame := self._frame()) is not None:
            payload = _payload(frame)
            if payload is not None:
                yield payload

    def end(self) -> Iterable[bytes]:
        """Return nothing if the stream ended between two frames.

        Raises:
            ProviderFailed: It ended inside one.
        """
        if self._buffer:
            text = "the event stream ended inside a frame"
            raise ProviderFailed(Failure(text, is_cut_off=True))
        return ()

    def _frame(self) -> bytes | None:
        """Remove and return the next frame from the buffer; None if it is not complete yet."""
        if len(self._buffer) < _PRELUDE.size:
            return None
        frame_bytes, headers_bytes, checksum = _PRELUDE.unpack_from(self._buffer)
        if zlib.crc32(self._buffer[: _PRELUDE.size - _CHECKSUM.size]) != checksum:
            raise _damaged("the lengths of a frame do not match their checksum")
        if not _FRAME_BYTES_MIN + headers_bytes <= frame_bytes <= FRAME_BYTES_MAX:
            raise _damaged(f"a frame claims to have {frame_bytes} bytes")
        if len(self._buffer) < frame_bytes:
            return None
        frame = bytes(self._buffer[:frame_bytes])
        del self._buffer[:frame_bytes]
        if zlib.crc32(frame[: -_CHECKSUM.size]) != _CHECKSUM.unpack(frame[-_CHECKSUM.size :])[0]:
            raise _damaged("a frame does not match its checksum")
        return frame


def _payload(frame: bytes) -> bytes | None:
    """Return the payload of an event; None for a frame of another kind."""
    headers_bytes = _PRELUDE.unpack_from(frame)[1]
    payload_at = _PRELUDE.size + headers_bytes
    payload = frame[payload_at : -_CHECKSUM.size]
    try:
        headers = dict(_headers(frame[_PRELUDE.size : payload_at]))
    except (struct.error, IndexError, UnicodeDecodeError, KeyError):
        raise _damaged("the headers of a frame cannot be read") from None
    match headers.get(":message-type"):
        case "exception":
            raise _reported(headers.get(":exception-type", ""), payload)
        case "error":
            code, message = headers.get(":error-code", ""), headers.get(":error-message", "")
            raise _reported(code, msgspec.json.encode({"message": message}))
        case "event":
            return payload
        case _:
            return None


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield names and values of string headers; all others are skipped."""
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        name, kind = data[at + 1 : name_end].decode(), data[name_end]
        at = name_end + 1
        if kind in (_BYTES_TYPE, _TEXT_TYPE):
            value_bytes = struct.unpack_from(">H", data, at)[0]
            at += 2
        else:
            value_bytes = _VALUE_BYTES[kind]
        value = data[at : at + value_bytes]
        if len(value) < value_bytes:
            raise IndexError("a value ends after the headers")
        at += value_bytes
        if kind == _TEXT_TYPE:
            yield name, value.decode()


def _reported(name: str, payload: bytes) -> ProviderFailed:
    """Return the failure that an exception reports; its original status is preferred."""
    try:
        described = msgspec.json.decode(payload, type=_Exception)
    except (ValueError, RecursionError):
        described = _Exception()
    status_code = described.original_status_code or STATUS_BY_EXCEPTION.get(name.lower(), 0)
    text = ": ".join(each for each in (name, described.message, described.original_message) if each)
    return ProviderFailed(
        Failure(text or "exception", status_code=status_code, body=payload[:BODY_BYTES_MAX])
    )


def _damaged(text: str) -> ProviderFailed:
    return ProviderFailed(Failure(text, is_garbled=True))
