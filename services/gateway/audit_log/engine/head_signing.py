"""Signs the head of the chain at intervals, into a file outside of the database."""

import asyncio
from pathlib import Path
from typing import Final

from gateway.audit_log.store.reading import AuditReader
from parley.audit_log import SignedHead, append_head, read_heads, sign_head
from parley.clock import Clock
from parley.identity import SigningKey

INTERVAL_S: Final = 10.0


class HeadSigner:
    """Signs a head whenever the log grew.

    Args:
        reader: Reads the head.
        key: The key of the audit log.
        path: The file of signed heads.
        clock: The clock.
    """

    def __init__(self, reader: AuditReader, key: SigningKey, path: Path, clock: Clock) -> None:
        self._reader = reader
        self._key = key
        self._path = path
        self._clock = clock
        self._signed_seq: int | None = None

    async def run(self) -> None:
        """Sign until cancelled."""
        while True:
            await self.sign()
            await self._clock.sleep(INTERVAL_S)

    async def sign(self) -> None:
        """Sign the head, unless it is signed already."""
        if self._signed_seq is None:
            heads = await asyncio.to_thread(read_heads, self._path)
            self._signed_seq = max((head.seq for head in heads), default=0)
        seq, entry_hash = await self._reader.head()
        # A head below the signed one is not signed: the log was cut off, and stays found so.
        if seq <= self._signed_seq:
            return
        head: SignedHead = sign_head(seq, entry_hash, self._clock.now(), self._key)
        await asyncio.to_thread(append_head, self._path, head)
        self._signed_seq = seq
