"""The archive of an export: a ZIP file whose first entry is a manifest with hashes.

It is written while it is read: no more than one part of a file is in memory.
"""

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Sequence
from typing import IO, Final, cast

import msgspec

from gateway.identity.store.account_exports import ExportEntry, ExportRecord, ExportStore

FORMAT: Final = "parley-account-export/1"
MANIFEST: Final = "manifest.json"
PIECE_BYTES_MAX: Final = 256 * 1024


class ArchiveCutOff(Exception):
    """The export was deleted while its archive was read."""


class _Sink(io.RawIOBase):
    """Collects what a ZIP writer writes; it cannot seek, so sizes follow the data."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def writable(self) -> bool:
        """Return that it is."""
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Append data."""
        self._buffer += data
        return len(data)

    def taken(self) -> Sequence[bytes]:
        """Return what was written since the last call, in pieces."""
        data, self._buffer = bytes(self._buffer), bytearray()
        return [
            data[start : start + PIECE_BYTES_MAX] for start in range(0, len(data), PIECE_BYTES_MAX)
        ]


async def archive(store: ExportStore, record: ExportRecord) -> AsyncIterator[bytes]:
    """Yield the archive of a complete export.

    Raises:
        ArchiveCutOff: The export was deleted meanwhile.
    """
    sink = _Sink()
    entries = await store.entries(record.id)
    with zipfile.ZipFile(cast(IO[bytes], sink), "w", zipfile.ZIP_DEFLATED) as writer:
        writer.writestr(_info(MANIFEST, record), manifest(record, entries))
        for entry in entries:
            for piece in sink.taken():
                yield piece
            info = _info(entry.name, record)
            info.file_size = entry.size_bytes
            with writer.open(info, "w") as file:
                async for data in store.parts(record.id, entry):
                    if data is None:
                        raise ArchiveCutOff
                    # Compressing a part takes longer than other requests should wait.
                    await asyncio.to_thread(file.write, data)
                    for piece in sink.taken():
                        yield piece
    for piece in sink.taken():
        yield piece


def manifest(record: ExportRecord, entries: Sequence[ExportEntry]) -> bytes:
    """Return the manifest: what the archive is, and the hash of each file in it."""
    document = {
        "format": FORMAT,
        "export_id": record.id,
        "user_id": record.user_id,
        "created_at": record.created_at,
        "completed_at": record.completed_at,
        "entries": [
            {"name": each.name, "size_bytes": each.size_bytes, "sha256": each.sha256.hex()}
            for each in entries
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _info(name: str, record: ExportRecord) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, record.created_at.timetuple()[:6])
    info.compress_type = zipfile.ZIP_DEFLATED
    return info
