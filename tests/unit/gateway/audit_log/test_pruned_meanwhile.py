"""Pruning and verification: what is checked, in which thread, and while another gateway prunes."""

import logging
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gateway.audit_log.engine.pruning import LogPruner
from gateway.audit_log.engine.verifying import LogVerification
from gateway.audit_log.store.pruning import NextPruning, PruningStore
from gateway.audit_log.store.reading import AuditReader
from parley.audit_log import SignedHead, append_head, read_heads, sign_checkpoint, sign_head
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


def prune(stored: Stored, path: Path, until_seq: int) -> None:
    """Prune as another gateway does."""
    last = next(each.entry for each in stored.lines if each.entry.seq == until_seq)
    append_head(path, sign_checkpoint(until_seq, last.hash, FakeClock().now(), KEY))
    stored.lines = tuple(each for each in stored.lines if each.entry.seq > until_seq)


async def test_a_verification_while_entries_are_pruned_finds_nothing(tmp_path: Path) -> None:
    lines, path = log_of(9), tmp_path / "heads.jsonl"
    prunings = [7, 4]

    def between(stored: Stored) -> None:
        if prunings:
            prune(stored, path, prunings.pop())

    found = await LogVerification(Stored(lines, between=between), KEY, path).run()

    assert (found.problems, prunings) == ((), [])
    assert found.checkpoint is not None
    assert found.checkpoint.seq == 7


async def test_a_verification_reads_at_most_three_times(tmp_path: Path) -> None:
    lines, path = log_of(30), tmp_path / "heads.jsonl"
    prunings: list[int] = []

    def between(stored: Stored) -> None:
        first = stored.lines[0].entry.seq
        if first + 5 < len(lines) and len(prunings) < 5:
            prunings.append(first + 4)
            prune(stored, path, first + 4)

    def at_once(stored: Stored) -> None:
        stored.between = _nothing
        between(stored)

    class Pruned(Stored):
        async def head(self) -> tuple[int, bytes]:
            self.between = at_once
            return await super().head()

    found = await LogVerification(Pruned(lines), KEY, path).run()

    assert (len(prunings), found.is_intact) == (3, False)


async def test_entries_that_somebody_removes_are_found_while_others_are_pruned(
    tmp_path: Path,
) -> None:
    lines, path = log_of(9), tmp_path / "heads.jsonl"
    prunings = [4]

    def between(stored: Stored) -> None:
        if prunings:
            prune(stored, path, prunings.pop())

    without = tuple(each for each in lines if each.entry.seq != 6)
    found = await LogVerification(Stored(without, between=between), KEY, path).run()

    assert [(each.kind, each.seq) for each in found.problems] == [("removed", 6)]


async def test_a_second_pruner_says_nothing_of_entries_that_the_first_one_pruned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines, path = log_of(6), tmp_path / "heads.jsonl"
    sign_all(path, lines)
    stored = Stored(lines, old_seq=4, between=lambda stored: prune_once(stored))

    def prune_once(stored: Stored) -> None:
        stored.between = _nothing
        prune(stored, path, 4)

    with caplog.at_level(logging.ERROR):
        assert not await pruner_of(stored, path).prune_next()

    assert caplog.records == []
    assert [head.seq for head in read_heads(path) if head.is_checkpoint] == [4]
