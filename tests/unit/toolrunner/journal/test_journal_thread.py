import asyncio
import errno
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from parley.clock import FakeClock
from toolrunner.journal.database import open_file
from toolrunner.journal.journal import Begun, Done, Failed, Journal
from toolrunner.journal.records import FileEffect, Key
from toolrunner.journal.thread import JournalThread, open_journal
from toolrunner.primitives.domain import ChatId, ExecutionId, WorkspaceId
from toolrunner.primitives.errors import JournalFailed, StaleOwner

CLOCK = FakeClock()
FULL_SYNC = 2


def key_of(name: str, epoch: int = 1) -> Key:
    return Key(ExecutionId(name), ChatId("chat-1"), epoch, "first")


def effect(name: str, epoch: int = 1) -> FileEffect:
    return FileEffect(name, key_of(name, epoch), "/Service/Write", b"body", WorkspaceId("w"))


def opened(directory: Path) -> tuple[Journal, sqlite3.Connection]:
    connection, generation, lost = open_file(
        directory / "journal.sqlite",
        new_generation="first",
        boot_id="boot-1",
        now=CLOCK.now(),
        adopted=(),
    )
    return Journal(connection, generation, CLOCK, lost), connection


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[JournalThread]:
    path = directory / "journal.sqlite"
    async with (
        asyncio.timeout(10),
        open_journal(path, new_generation="first", boot_id="boot-1", clock=CLOCK) as journal,
    ):
        yield journal


def test_what_is_asked_together_is_one_commit_with_a_full_sync(tmp_path: Path) -> None:
    journal, connection = opened(tmp_path)
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    outcomes = journal.together(
        [
            lambda journal: journal.begin(effect("one"), None),
            lambda journal: journal.begin(effect("two"), None),
            lambda journal: journal.finish(effect("one"), b"response", None),
        ]
    )
    connection.set_trace_callback(None)
    assert outcomes == [Done(Begun()), Done(Begun()), Done(None)]
    assert [each for each in statements if each in ("BEGIN IMMEDIATE", "COMMIT")] == [
        "BEGIN IMMEDIATE",
        "COMMIT",
    ]
    assert connection.execute("PRAGMA synchronous").fetchone() == (FULL_SYNC,)
    journal.close()


def test_one_that_is_refused_undoes_nothing_of_the_others(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)

    def broken(journal: Journal) -> None:
        raise RuntimeError("a defect")

    first, stale, failed = journal.together(
        [
            lambda journal: journal.begin(effect("one", 2), None),
            lambda journal: journal.begin(effect("two", 1), None),
            broken,
        ]
    )
    assert first == Done(Begun())
    assert isinstance(stale, Failed)
    assert isinstance(stale.error, StaleOwner)
    assert isinstance(failed, Failed)
    assert journal.begin(effect("two", 2), None) == Begun()
    journal.close()


def test_what_the_disk_does_not_take_together_is_tried_one_by_one(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)

    def full(journal: Journal) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    done, failed = journal.together([lambda journal: journal.begin(effect("one"), None), full])
    assert done == Done(Begun())
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, sqlite3.OperationalError)
    journal.close()


def test_the_log_has_its_length_before_the_first_entry(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)
    log = tmp_path / "journal.sqlite-wal"
    before = log.stat().st_size
    for number in range(50):
        journal.begin(effect(f"e{number}"), None)
    assert (before, log.stat().st_size) == (before, before)
    assert before > 4_000_000
    journal.close()


async def test_answers_come_in_the_order_of_the_asking(tmp_path: Path) -> None:
    go, key = Event(), key_of("e")

    async def let_go() -> None:
        go.set()

    async with serving(tmp_path) as journal, asyncio.TaskGroup() as tasks:
        tasks.create_task(journal.run(lambda _: go.wait(5)))
        begun = tasks.create_task(journal.run(lambda journal: journal.begin(effect("e"), None)))
        ended = tasks.create_task(
            journal.run(lambda journal: journal.finish(effect("e"), b"response", None))
        )
        found = tasks.create_task(journal.run(lambda journal: journal.execution(key)))
        tasks.create_task(let_go())
    execution = found.result()
    assert (begun.result(), ended.result()) == (Begun(), None)
    assert execution is not None
    assert execution.response == b"response"


async def test_what_nobody_waits_for_any_more_is_done(tmp_path: Path) -> None:
    go, key = Event(), key_of("e")
    async with serving(tmp_path) as journal:
        async with asyncio.TaskGroup() as tasks:
            held = tasks.create_task(journal.run(lambda _: go.wait(5)))
            given_up = tasks.create_task(
                journal.run(lambda journal: journal.begin(effect("e"), None))
            )

            async def give_up() -> None:
                given_up.cancel()
                go.set()

            tasks.create_task(give_up())
        assert (held.result(), given_up.cancelled()) == (True, True)
        assert await journal.run(lambda journal: journal.execution(key)) is not None


async def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as journal:
        pass
    with pytest.raises(JournalFailed):
        await journal.run(lambda journal: journal.generation)


class FailingJournal(Journal):
    """Fails once in a way that it does not expect, inside of a transaction."""

    has_failed = False

    def together(self, works: Sequence[Callable[[Journal], Any]]) -> list[Done | Failed]:
        if not self.has_failed:
            self.has_failed = True
            self._connection.execute("BEGIN IMMEDIATE")
            raise OSError(errno.EIO, "broken", "/node/journal.db")
        return super().together(works)


async def test_an_unexpected_failure_is_answered_and_the_thread_goes_on(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as executor:

        def open_failing() -> FailingJournal:
            _, connection = opened(tmp_path)
            return FailingJournal(connection, "first", CLOCK, frozenset())

        failing = await loop.run_in_executor(executor, open_failing)
        journal = JournalThread(failing, loop)
        serving = loop.run_in_executor(executor, journal.serve)
        try:
            async with asyncio.timeout(5):
                with pytest.raises(JournalFailed, match="OSError") as failed:
                    await journal.run(lambda journal: journal.begin(effect("one"), None))
                assert "/node" not in str(failed.value)
                assert await journal.run(lambda each: each.begin(effect("two"), None)) == Begun()
        finally:
            journal.stop()
            await serving
            await loop.run_in_executor(executor, failing.close)
    reopened, _ = opened(tmp_path)
    assert reopened.execution(key_of("one")) is None
    assert reopened.execution(key_of("two")) is not None
    reopened.close()
