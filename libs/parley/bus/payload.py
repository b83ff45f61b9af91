"""Notices encoded as NOTIFY payloads: ids and versions only, as many per payload as fit."""

from collections.abc import Iterable, Iterator

import msgspec

from parley.bus.port import BusError, BusItem, Notice, Resync

PAYLOAD_BYTES_MAX = 7_900  # PostgreSQL refuses 8,000.

_decoder = msgspec.json.Decoder(list[tuple[str, str, int]])
_encode = msgspec.json.Encoder().encode
RESYNC = "[]"


class PayloadUnreadable(BusError):
    """The payload has a format that this version cannot decode."""


def encode(notices: Iterable[Notice]) -> Iterator[str]:
    """Yield payloads that together carry all `notices`, each within the bound."""
    parts: list[bytes] = []
    size_bytes = 2
    for notice in notices:
        part = _encode((notice.topic, notice.id, notice.version))
        if parts and size_bytes + len(part) + 1 > PAYLOAD_BYTES_MAX:
            yield _joined(parts)
            parts, size_bytes = [], 2
        parts.append(part)
        size_bytes += len(part) + 1
    if parts:
        yield _joined(parts)


def decode(payload: str) -> tuple[BusItem, ...]:
    """Return the items of a payload; a sender that lost notices sends an empty list.

    Raises:
        PayloadUnreadable: It has the format of another version, or was not sent by Parley.
    """
    try:
        entries = _decoder.decode(payload)
        return tuple(Notice(*entry) for entry in entries) or (Resync(),)
    except (msgspec.MsgspecError, BusError, ValueError) as error:
        raise PayloadUnreadable(f"a payload could not be read: {error}") from error


def _joined(parts: list[bytes]) -> str:
    return (b"[" + b",".join(parts) + b"]").decode()
