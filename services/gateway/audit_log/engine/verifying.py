"""Verifies the stored log against its seals and the signed heads."""

import asyncio
from pathlib import Path
from typing import Final

from gateway.audit_log.store.reading import AuditReader
from parley.audit_log import (
    AuditVerification,
    AuditVerifier,
    SignedHead,
    read_heads,
    seal_key_of,
)
from parley.identity import SigningKey

#: How often the log is read if entries are pruned each time.
ATTEMPTS_MAX: Final = 3


class LogVerification:
    """Verifies the whole log; one at a time, so that many requests do not occupy the process.

    Args:
        reader: Reads the log.
        key: The key of the audit log; None without one.
        heads_file: The file of signed heads; None without one.
    """

    def __init__(
        self, reader: AuditReader, key: SigningKey | None, heads_file: Path | None
    ) -> None:
        self._reader = reader
        self._key = key
        self._heads_file = heads_file
        self._lock = asyncio.Lock()

    async def run(self) -> AuditVerification:
        """Return what was found; the log is read again if entries were pruned meanwhile."""
        async with self._lock:
            heads = await self._heads()
            found = await self._verified(heads)
            for _ in range(ATTEMPTS_MAX - 1):
                if found.is_intact:
                    break
                read, heads = heads, await self._heads()
                if _pruned_seq(heads) <= _pruned_seq(read):
                    break
                found = await self._verified(heads)
            return found

    async def _heads(self) -> tuple[SignedHead, ...]:
        if self._heads_file is None:
            return ()
        return await asyncio.to_thread(read_heads, self._heads_file)

    async def _verified(self, heads: tuple[SignedHead, ...]) -> AuditVerification:
        key = self._key
        # Heads before the log: what is appended meanwhile only makes the log longer.
        stored_head = await self._reader.head()
        # In a thread: the signature of each head is checked.
        verifier = await asyncio.to_thread(
            AuditVerifier,
            heads=heads,
            public_key=None if key is None else key.public,
            seal_key=None if key is None else seal_key_of(key),
            stored_head=stored_head,
        )
        async for lines in self._reader.batches(until_seq=stored_head[0]):
            verifier.read(lines)
        return verifier.finish()


def _pruned_seq(heads: tuple[SignedHead, ...]) -> int:
    """Return up to which entry the log was pruned; 0 if it was not."""
    return max((head.seq for head in heads if head.is_checkpoint), default=0)
