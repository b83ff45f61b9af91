"""Pruning and verification: what is checked, in which thread, and while another gateway prunes."""

import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gateway.audit_log.engine.pruning import LogPruner
from gateway.audit_log.engine.verifying import LogVerification
from gateway.audit_log.store.pruning import NextPruning, PruningStore
from gateway.audit_log.store.reading import AuditReader
from parley.audit_log import SignedHead, append_head, sign_head
from parley.clock import FakeClock
from unit.parley.audit_log.test_verification import KEY, Lines
from unit.parley.audit_log.test_verification import log as log_of

BATCH = 2
Between = Callable[["Stored"], None]


def _nothing(stored: "Stored") -> None:
    """Leave the log as it is."""


class Stored(AuditReader, PruningStore):
    """A log in memory, whose entries up to `old_seq` are old.

    Args:
        lines: The log.
        old_seq: The last entry to prune.
        between: Is called after each batch that is read.
    """

    def __init__(self, lines: Lines, *, old_seq: int = 0, between: Between = _nothing) -> None:
        self.lines = lines
        self.old_seq = old_seq
        self.between = between
        self._end = lines[-1].entry

    async def head(self) -> tuple[int, bytes]:
        """Return the last entry."""
        return self._end.seq, self._end.hash

    async def batches(self, *, after_seq: int = 0, until_seq: int) -> AsyncIterator[Lines]:
        """Yield what is there at the time of each batch."""
        while True:
            wanted = [each for each in self.lines if after_seq < each.entry.seq <= until_seq]
            if not wanted:
                return
            batch = tuple(wanted[:BATCH])
            yield batch
            after_seq = batch[-1].entry.seq
            self.between(self)

    async def oldest(self, days: int) -> NextPruning | None:
        """Return the entries that are old."""
        old = [each.entry for each in self.lines if each.entry.seq <= self.old_seq]
        return NextPruning(old[0].seq, old[-1].seq, old[-1].hash) if old else None

    async def delete(self, until_seq: int) -> None:
        """Delete the entries up to a number."""
        self.lines = tuple(each for each in self.lines if each.entry.seq > until_seq)


def pruner_of(stored: Stored, path: Path) -> LogPruner:
    return LogPruner(stored, stored, KEY, path, retention_days=30, clock=FakeClock())


def sign_all(path: Path, lines: Lines) -> None:
    for each in lines:
        append_head(path, sign_head(each.entry.seq, each.entry.hash, FakeClock().now(), KEY))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Return the heads whose signatures are checked, and whether the loop waits for that."""
    found: list[tuple[int, bool]] = []
    is_signed_by = SignedHead.is_signed_by

    def noted(head: SignedHead, public_key: bytes) -> bool:
        found.append((head.seq, threading.current_thread() is threading.main_thread()))
        return is_signed_by(head, public_key)

    monkeypatch.setattr(SignedHead, "is_signed_by", noted)
    return found


async def test_only_heads_of_pruned_entries_are_checked_and_not_on_the_loop(
    tmp_path: Path, checked: list[tuple[int, bool]]
) -> None:
    lines, path = log_of(8), tmp_path / "heads.jsonl"
    sign_all(path, lines)
    stored = Stored(lines, old_seq=3)
    assert await pruner_of(stored, path).prune_next()
    stored.old_seq = 5
    checked.clear()
    assert await pruner_of(stored, path).prune_next()

    # 3 twice: the head, and the checkpoint from which the rest goes on.
    assert checked == [(3, False), (4, False), (5, False), (3, False)]
    assert [each.entry.seq for each in stored.lines] == [6, 7, 8]


async def test_a_verification_checks_heads_beside_the_loop(
    tmp_path: Path, checked: list[tuple[int, bool]]
) -> None:
    lines, path = log_of(3), tmp_path / "heads.jsonl"
    sign_all(path, lines)
    found = await LogVerification(Stored(lines), KEY, path).run()

    assert found.is_intact
    assert checked == [(1, False), (2, False), (3, False)]
