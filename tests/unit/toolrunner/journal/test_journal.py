import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from support.toolrunner.journal_entries import (
    CLOCK,
    FINISHED,
    FIRST_OWNER,
    PROCESS,
    RUNNING,
    STARTED,
    effect,
    key,
    opened,
)
from toolrunner.journal.database import open_file
from toolrunner.journal.journal import (
    CANCELLED_ERROR,
    Begun,
    Journal,
    Known,
    NotBegun,
    first_response,
)
from toolrunner.journal.records import (
    LIVE,
    ExecutionState,
    FileEffect,
    LostReason,
    ProcessState,
)
from toolrunner.primitives.domain import Exit, ProcessId, WorkspaceId
from toolrunner.primitives.errors import (
    ExecutionIdReused,
    JournalChanged,
    JournalUnusable,
    OutcomeUnknown,
    RequestIdReused,
    StaleOwner,
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = opened(tmp_path)
    yield journal
    journal.close()


def test_an_entry_is_on_disk_before_the_effect_acts(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    assert journal.begin(effect(), PROCESS) == Begun()
    assert journal.execution(key()) == STARTED
    assert journal.process(PROCESS.process_id) == PROCESS
    journal.close()


def test_the_same_request_finds_its_entry(journal: Journal) -> None:
    journal.begin(effect(), PROCESS)
    other = structs.replace(PROCESS, process_id=ProcessId("process-2"))
    assert journal.begin(effect(), other) == Known(STARTED)
    assert journal.process(other.process_id) is None
    journal.finish(effect(), b"response", RUNNING)
    assert journal.begin(effect(), other) == Known(FINISHED)


def test_another_body_under_the_same_id_is_refused(journal: Journal) -> None:
    journal.begin(effect(), PROCESS)
    with pytest.raises(ExecutionIdReused):
        journal.begin(effect(b"another"), PROCESS)
    with pytest.raises(ExecutionIdReused):
        journal.execution(key(chat_id="chat-2"))


def test_what_a_person_does_has_its_own_ids(journal: Journal) -> None:
    assert journal.begin(effect(), PROCESS) == Begun()
    assert journal.begin(effect(b"by hand", None), None) == Begun()
    with pytest.raises(RequestIdReused):
        journal.begin(effect(b"another", None), None)


def test_a_lower_epoch_is_refused_for_everything(journal: Journal) -> None:
    journal.begin(effect(by=key(5)), PROCESS)
    for ask in (
        lambda: journal.begin(effect(by=key(4)), PROCESS),
        lambda: journal.execution(key(4)),
        lambda: journal.cancel(key(4)),
    ):
        with pytest.raises(StaleOwner) as refused:
            ask()
        assert (refused.value.owner_epoch, refused.value.highest_epoch) == (4, 5)


def test_asking_stores_the_epoch_so_that_an_older_owner_cannot_start(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    assert journal.execution(key(2)) is None
    journal.close()
    journal = opened(tmp_path)
    with pytest.raises(StaleOwner):
        journal.begin(effect(by=key(1)), PROCESS)
    assert journal.execution(key(2)) is None
    journal.close()


def test_a_refused_request_still_stores_its_epoch(journal: Journal) -> None:
    journal.begin(effect(), PROCESS)
    with pytest.raises(ExecutionIdReused):
        journal.begin(effect(b"another", key(9)), PROCESS)
    with pytest.raises(StaleOwner):
        journal.execution(key(8))


def test_epochs_of_chats_are_apart(journal: Journal) -> None:
    journal.execution(key(9))
    assert journal.execution(key(1, chat_id="chat-2")) is None


def test_another_generation_is_refused(journal: Journal) -> None:
    other = key(generation="second")
    for ask in (
        lambda: journal.begin(effect(by=other), PROCESS),
        lambda: journal.execution(other),
        lambda: journal.cancel(other),
        lambda: journal.acknowledge(["execution-1"], "second"),
    ):
        with pytest.raises(JournalChanged) as refused:
            ask()
        assert refused.value.generation == "first"


def test_the_generation_belongs_to_the_file(tmp_path: Path) -> None:
    opened(tmp_path, generation="first").close()
    journal = opened(tmp_path, generation="second")
    assert journal.generation == "first"
    journal.close()
    (tmp_path / "journal.sqlite").unlink()
    journal = opened(tmp_path, generation="third")
    assert journal.generation == "third"
    journal.close()


def test_what_may_not_begin_leaves_no_entry(journal: Journal) -> None:
    assert journal.begin(effect(), PROCESS, may_begin=False) == NotBegun()
    assert journal.execution(key()) is None


def test_an_entry_without_a_result_is_unknown_after_a_restart(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.begin(effect(), PROCESS)
    journal.close()
    journal = opened(tmp_path)
    unknown = replace(STARTED, state=ExecutionState.UNKNOWN)
    assert journal.execution(key()) == unknown
    assert journal.begin(effect(), PROCESS) == Known(unknown)
    assert journal.process(PROCESS.process_id) == structs.replace(
        PROCESS,
        state=ProcessState.LOST,
        lost_reason=LostReason.START_UNCERTAIN,
        ended_at=CLOCK.now(),
    )
    journal.close()


@pytest.mark.parametrize(
    ("boot_id", "reason"),
    [("boot-1", LostReason.RUNNER_RESTARTED), ("boot-2", LostReason.MACHINE_RESTARTED)],
)
def test_a_process_that_ran_is_lost_after_a_restart(
    tmp_path: Path, boot_id: str, reason: LostReason
) -> None:
    journal = opened(tmp_path)
    journal.begin(effect(), PROCESS)
    journal.finish(effect(), b"response", RUNNING)
    journal.close()
    journal = opened(tmp_path, boot_id=boot_id)
    assert journal.execution(key()) == FINISHED
    lost = structs.replace(
        RUNNING, state=ProcessState.LOST, lost_reason=reason, ended_at=CLOCK.now()
    )
    assert journal.processes(PROCESS.workspace_id) == (lost,)
    journal.close()


def test_the_end_of_a_process_is_never_overwritten(journal: Journal) -> None:
    journal.begin(effect(), PROCESS)
    exited = structs.replace(RUNNING, state=ProcessState.EXITED, exit=Exit(exit_code=0))
    journal.record(exited)
    journal.finish(effect(), b"response", RUNNING)
    assert journal.process(PROCESS.process_id) == exited


def test_what_was_cancelled_unseen_can_no_longer_start(journal: Journal) -> None:
    cancelled = journal.cancel(key())
    assert cancelled.state is ExecutionState.CANCELLED
    known = replace(cancelled, process_id=PROCESS.process_id)
    assert journal.begin(effect(), PROCESS) == Known(known)
    assert journal.process(PROCESS.process_id) == structs.replace(
        PROCESS,
        state=ProcessState.START_FAILED,
        start_error=CANCELLED_ERROR,
        ended_at=CLOCK.now(),
    )
    assert journal.cancel(key()) == known


def test_cancelling_what_began_returns_its_entry(journal: Journal) -> None:
    journal.begin(effect(), PROCESS)
    assert journal.cancel(key()) == STARTED


def test_an_acknowledged_result_is_dropped_and_cannot_begin_again(journal: Journal) -> None:
    journal.begin(effect(), PROCESS)
    assert journal.acknowledge(["execution-1", "other"], "first") == ("execution-1", "other")
    journal.finish(effect(), b"response", RUNNING)
    assert journal.acknowledge(["execution-1", "other"], "first") == ("other",)
    dropped = replace(FINISHED, state=ExecutionState.ACKNOWLEDGED, response=b"")
    assert journal.begin(effect(), PROCESS) == Known(dropped)
    assert journal.execution(key()) == dropped
    with pytest.raises(OutcomeUnknown):
        first_response(dropped)


def test_one_process_uses_one_journal(tmp_path: Path, journal: Journal) -> None:
    with pytest.raises(JournalUnusable) as refused:
        opened(tmp_path)
    assert "another toolrunner" in refused.value.problem


def test_a_file_that_is_no_journal_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(JournalUnusable):
        opened(tmp_path)
    assert path.read_bytes() == b"not a database" * 100


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(JournalUnusable):
        opened(tmp_path)


def test_every_beginning_is_synced(tmp_path: Path) -> None:
    full = 2
    connection, _, _ = open_file(
        tmp_path / "journal.sqlite", new_generation="g", boot_id="b", now=CLOCK.now(), adopted=()
    )
    assert connection.execute("PRAGMA synchronous").fetchone() == (full,)
    connection.close()


FILE_EFFECT = FileEffect("execution-1", None, "/Files/Write", b"body", WorkspaceId("w"))


def test_an_effect_that_was_withdrawn_may_begin_again(journal: Journal) -> None:
    assert journal.begin(FILE_EFFECT, None) == Begun()
    journal.withdraw(FILE_EFFECT)
    assert journal.begin(FILE_EFFECT, None) == Begun()
    journal.finish(FILE_EFFECT, b"response", None)
    journal.withdraw(FILE_EFFECT)
    assert isinstance(journal.begin(FILE_EFFECT, None), Known)


def test_an_effect_that_was_lost_is_unknown_for_ever(journal: Journal) -> None:
    journal.begin(FILE_EFFECT, None)
    journal.lose(FILE_EFFECT)
    known = journal.begin(FILE_EFFECT, None)
    assert isinstance(known, Known)
    assert known.execution.state is ExecutionState.UNKNOWN


def test_who_outlived_the_service_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    first = Journal.open(path, new_generation="first", boot_id="boot-1", clock=CLOCK)
    first.begin(effect(), PROCESS)
    other = replace(effect(by=None), request_id="other")
    first.begin(other, structs.replace(PROCESS, process_id=ProcessId("other"), request_id="other"))
    first.close()
    again = Journal.open(
        path,
        new_generation="generation-2",
        boot_id="boot-1",
        clock=CLOCK,
        adopted=[PROCESS.process_id],
    )
    assert again.lost == {"other"}
    assert again.execution(FIRST_OWNER) == STARTED
    assert again.process(PROCESS.process_id) == PROCESS
    lost = again.process(ProcessId("other"))
    assert lost is not None
    assert lost.lost_reason is LostReason.START_UNCERTAIN
    again.finish_start(RUNNING, b"response")
    assert (again.execution(FIRST_OWNER), again.process(PROCESS.process_id)) == (FINISHED, RUNNING)
    again.close()


def test_a_journal_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    Journal.open(path, new_generation="first", boot_id="b", clock=CLOCK).close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP INDEX executions_process")
        connection.execute("ALTER TABLE executions DROP COLUMN acknowledged_at")
        connection.execute("ALTER TABLE executions DROP COLUMN workspace_id")
        connection.execute("DROP TABLE tombstones")
        connection.execute("DROP TABLE tombstone_workspaces")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    journal = Journal.open(path, new_generation="another", boot_id="b", clock=CLOCK)
    assert journal.generation == "first"
    assert journal.begin(effect(), PROCESS) == Begun()
    journal.finish(effect(), b"response", RUNNING)
    assert journal.acknowledge(["execution-1"], "first") == ()
    journal.close()


def test_no_process_comes_back_from_its_end(journal: Journal) -> None:
    # One journal for all examples, each with a process of its own: opening one takes longest.
    numbers = count()

    @given(st.lists(st.sampled_from(ProcessState), min_size=1, max_size=8))
    def check(states: list[ProcessState]) -> None:
        process = structs.replace(PROCESS, process_id=ProcessId(f"process-of-{next(numbers)}"))
        for state in states:
            journal.record(structs.replace(process, state=state))
        kept = journal.process(process.process_id)
        assert kept is not None
        ends = [state for state in states if state not in LIVE]
        assert kept.state is (ends[0] if ends else states[-1])

    check()
