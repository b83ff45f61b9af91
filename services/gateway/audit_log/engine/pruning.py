"""Prunes entries that are older than the setting, behind a checkpoint that is signed before.

What is pruned is verified first: a line that somebody changed stays, and is found. If the process
dies after it signed a checkpoint, the entries are still there and the next attempt deletes them.
"""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from gateway.audit_log.store.pruning import NextPruning, OldEntries, PruningStore
from gateway.audit_log.store.reading import AuditReader
from parley.audit_log import (
    AuditProblem,
    AuditProblemKind,
    AuditVerifier,
    SignedHead,
    append_head,
    read_heads,
    seal_key_of,
    sign_checkpoint,
)
from parley.clock import Clock
from parley.identity import SigningKey

INTERVAL_S: Final = 3600.0
#: A later entry may say that the person was deleted; these lines alone do not show it.
EXPLAINED_LATER: Final = frozenset(
    {AuditProblemKind.PERSON_REMOVED, AuditProblemKind.ADDRESS_REMOVED}
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuditRetention:
    """How long entries are kept, and what was or would be pruned.

    Attributes:
        retention_days: The setting; 0 keeps all.
        days: The age that is asked for.
        old: What is older than `days`.
        checkpoint: The newest signed checkpoint; None if nothing was pruned.
    """

    retention_days: int
    days: int
    old: OldEntries
    checkpoint: SignedHead | None


class LogPruner:
    """Prunes the log.

    Args:
        store: Deletes entries.
        reader: Reads what is to be deleted.
        key: Signs checkpoints.
        path: The file of signed heads and checkpoints.
        retention_days: The age from which on entries are pruned; 0 keeps all.
        clock: The time of checkpoints, and between two rounds.
    """

    def __init__(
        self,
        store: PruningStore,
        reader: AuditReader,
        key: SigningKey,
        path: Path,
        *,
        retention_days: int,
        clock: Clock,
    ) -> None:
        self._store = store
        self._reader = reader
        self._key = key
        self._path = path
        self._retention_days = retention_days
        self._clock = clock

    async def run(self) -> NoReturn:
        """Prune until cancelled."""
        while True:
            if self._retention_days:
                while await self.prune_next():
                    pass
            await self._clock.sleep(INTERVAL_S)

    async def prune_next(self) -> bool:
        """Prune the oldest entries; return whether there were any."""
        pruned = await self._store.oldest(self._retention_days)
        if pruned is None:
            return False
        until_seq = pruned.until_seq
        heads = await asyncio.to_thread(read_heads, self._path)
        problem = await self._problem(pruned, heads)
        if problem is not None:
            if await self._store.oldest(self._retention_days) != pruned:
                # Another gateway pruned these entries while they were read.
                return False
            _log.error(
                "the audit log is not pruned, verify it",
                extra={"seq": problem.seq, "problem": problem.kind.value},
            )
            return False
        if not any(head.is_checkpoint and head.seq == until_seq for head in heads):
            checkpoint = sign_checkpoint(until_seq, pruned.until_hash, self._clock.now(), self._key)
            await asyncio.to_thread(append_head, self._path, checkpoint)
        await self._store.delete(until_seq)
        return True

    async def _problem(
        self, pruned: NextPruning, heads: tuple[SignedHead, ...]
    ) -> AuditProblem | None:
        # Each head costs a check of its signature, and a head is signed every ten seconds.
        verifier = await asyncio.to_thread(
            AuditVerifier,
            heads=tuple(
                head for head in heads if pruned.first_seq - 1 <= head.seq <= pruned.until_seq
            ),
            public_key=self._key.public,
            seal_key=seal_key_of(self._key),
        )
        async for lines in self._reader.batches(until_seq=pruned.until_seq):
            verifier.read(lines)
        found = verifier.finish().problems
        return next((each for each in found if each.kind not in EXPLAINED_LATER), None)


class RetentionReport:
    """Says what pruning does, and what it would do with another age.

    Args:
        store: Counts old entries.
        path: The file of signed heads and checkpoints; None without one.
        retention_days: The setting; 0 keeps all.
    """

    def __init__(self, store: PruningStore, path: Path | None, *, retention_days: int) -> None:
        self._store = store
        self._path = path
        self._retention_days = retention_days

    async def of(self, days: int) -> AuditRetention:
        """Return what is older than so many days; 0 asks for the setting."""
        days = days or self._retention_days
        old = await self._store.count(days) if days else OldEntries(0, 0)
        heads: tuple[SignedHead, ...] = ()
        if self._path is not None:
            heads = await asyncio.to_thread(read_heads, self._path)
        checkpoints = [head for head in heads if head.is_checkpoint]
        newest = max(checkpoints, key=lambda head: head.seq, default=None)
        return AuditRetention(self._retention_days, days, old, newest)
