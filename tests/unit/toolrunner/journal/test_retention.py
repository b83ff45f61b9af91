"""What the journal of a node deletes, when, and what it keeps of it."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from support.toolrunner.journal_entries import (
    CHAT,
    CLOCK,
    FIRST_OWNER,
    PROCESS,
    STARTED,
    effect,
    key,
    opened,
)
from toolrunner.journal.database import FREE_BYTES_MAX
from toolrunner.journal.journal import Begun, Journal, Known, first_response
from toolrunner.journal.records import (
    Execution,
    ExecutionState,
    Key,
    ProcessRecord,
    ProcessState,
)
from toolrunner.primitives.domain import ChatId, ExecutionId, Exit, ProcessId, WorkspaceId
from toolrunner.primitives.errors import OutcomeUnknown, StaleOwner


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = opened(tmp_path)
    yield journal
    journal.close()


HOUR = timedelta(hours=1)


def ended(name: str, after_s: float = 0.0) -> ProcessRecord:
    return structs.replace(
        PROCESS,
        process_id=ProcessId(name),
        request_id=name,
        state=ProcessState.EXITED,
        exit=Exit(exit_code=0),
        ended_at=CLOCK.now() + timedelta(seconds=after_s),
    )


def begun(journal: Journal, name: str, *, is_keyed: bool, after_s: float = 0.0) -> None:
    by = replace(FIRST_OWNER, execution_id=ExecutionId(name)) if is_keyed else None
    asked = replace(effect(by=by), request_id=name)
    process = ended(name, after_s)
    assert journal.begin(asked, structs.replace(process, state=ProcessState.STARTING)) == Begun()
    journal.finish(asked, b"response", process)


def expired(journal: Journal, *, kept_max: int = 10) -> list[str]:
    pruned(journal)
    old = journal.expire(ended_before=CLOCK.now() + HOUR, kept_max=kept_max)
    return sorted(process_id for _, process_id in old)


def pruned(
    journal: Journal, *, finished_after: timedelta = timedelta(0), at_once_max: int = 100
) -> int:
    """Prune what was acknowledged until now, and what ended before now and some time."""
    now = CLOCK.now()
    return journal.prune(
        acknowledged_before=now + HOUR,
        finished_before=now + finished_after,
        at_once_max=at_once_max,
    )


def test_only_what_was_acknowledged_or_is_a_persons_expires(journal: Journal) -> None:
    begun(journal, "waiting", is_keyed=True)
    begun(journal, "acknowledged", is_keyed=True)
    begun(journal, "by-hand", is_keyed=False)
    begun(journal, "later", is_keyed=False, after_s=7200)
    assert journal.acknowledge(["acknowledged"], "first") == ()
    assert expired(journal) == ["acknowledged", "by-hand"]
    kept = {record.process_id for record in journal.processes(PROCESS.workspace_id)}
    assert kept == {"waiting", "later"}
    waiting = journal.execution(replace(FIRST_OWNER, execution_id=ExecutionId("waiting")))
    assert waiting is not None
    assert waiting.response == b"response"
    acknowledged = replace(FIRST_OWNER, execution_id=ExecutionId("acknowledged"))
    assert journal.execution(acknowledged) == tombstone("acknowledged")


def tombstone(execution_id: str, chat_id: ChatId = CHAT) -> Execution:
    return Execution(
        request_id=execution_id,
        chat_id=chat_id,
        method="",
        body_hash=b"",
        state=ExecutionState.ACKNOWLEDGED,
        process_id=None,
        response=b"",
        started_at=None,
        finished_at=None,
    )


def test_what_was_never_acknowledged_is_pruned_by_its_age(journal: Journal) -> None:
    begun(journal, "lost", is_keyed=True)
    begun(journal, "by-hand", is_keyed=False)
    journal.begin(effect(), PROCESS)
    journal.cancel(replace(FIRST_OWNER, execution_id=ExecutionId("cancelled")))
    assert pruned(journal) == 0
    assert pruned(journal, finished_after=HOUR, at_once_max=2) == 2
    assert pruned(journal, finished_after=HOUR, at_once_max=2) == 1
    lost = replace(FIRST_OWNER, execution_id=ExecutionId("lost"))
    assert journal.execution(lost) == tombstone("lost")
    assert journal.cancel(lost) == tombstone("lost")
    assert journal.execution(replace(lost, execution_id=ExecutionId("cancelled"))) is not None
    assert journal.execution(key()) == STARTED
    # A person's request may come again by then: it is another one.
    begun(journal, "by-hand", is_keyed=False)


def test_a_tombstone_refuses_any_body_and_outlives_the_service(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    begun(journal, "execution-1", is_keyed=True)
    journal.acknowledge(["execution-1"], "first")
    assert pruned(journal) == 1
    journal.close()
    journal = opened(tmp_path)
    for body in (b"body", b"another"):
        assert journal.begin(effect(body), PROCESS) == Known(tombstone("execution-1"))
    assert journal.acknowledge(["execution-1", "never"], "first") == ("never",)
    with pytest.raises(OutcomeUnknown):
        first_response(tombstone("execution-1"))
    journal.close()


def test_tombstones_go_with_their_workspace_and_epochs_stay(journal: Journal) -> None:
    for name, workspace in (("one", "w1"), ("two", "w2"), ("none", "")):
        by = Key(ExecutionId(name), CHAT, 7, "first", WorkspaceId(workspace))
        asked = replace(effect(by=by), request_id=name)
        assert journal.begin(asked, None) == Begun()
        journal.finish(asked, b"response", None)
    journal.acknowledge(["one", "two", "none"], "first")
    assert pruned(journal) == 3
    assert journal.recorded_workspaces(CLOCK.now()) == ("w1", "w2")
    journal.forget_workspace(WorkspaceId("w1"))
    assert journal.recorded_workspaces(CLOCK.now()) == ("w2",)
    known = [
        journal.execution(Key(ExecutionId(name), CHAT, 7, "first"))
        for name in ("one", "two", "none")
    ]
    assert known == [None, tombstone("two"), tombstone("none")]
    with pytest.raises(StaleOwner):
        journal.execution(key(6))


def test_nothing_of_a_removed_workspace_is_left_in_the_files(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    canary = b"canary-5b1d" * 200
    by = Key(ExecutionId("one"), CHAT, 7, "first", WorkspaceId("w1"))
    asked = replace(effect(by=by), request_id="one")
    journal.begin(asked, None)
    journal.finish(asked, canary, None)

    def files_with() -> list[str]:
        return [each.name for each in tmp_path.iterdir() if canary[:11] in each.read_bytes()]

    assert files_with() != []
    journal.together([lambda each: each.forget_workspace(WorkspaceId("w1"))])
    assert files_with() == []
    assert journal.execution(by) is None
    journal.close()


def test_the_output_of_too_many_finished_processes_goes_oldest_first(journal: Journal) -> None:
    for at in range(5):
        begun(journal, f"p{at}", is_keyed=True, after_s=7200 + at)
    assert expired(journal, kept_max=3) == ["p0", "p1"]
    assert len(journal.processes(PROCESS.workspace_id)) == 5


def test_what_the_second_version_had_acknowledged_stays_so(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    begun(journal, "execution-1", is_keyed=True)
    journal.acknowledge(["execution-1"], "first")
    journal.close()
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        connection.execute("UPDATE executions SET state = 'finished'")
        connection.execute("ALTER TABLE executions DROP COLUMN workspace_id")
        connection.execute("DROP TABLE tombstones")
        connection.execute("DROP TABLE tombstone_workspaces")
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    journal = opened(tmp_path)
    known = journal.execution(key())
    assert known is not None
    assert known.state is ExecutionState.ACKNOWLEDGED
    assert pruned(journal) == 1
    assert journal.execution(key()) == tombstone("execution-1")
    journal.close()


def test_a_file_that_is_mostly_empty_is_smaller_after_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(tmp_path)
    begun(journal, "kept", is_keyed=True)
    journal.close()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE former (entry BLOB)")
        connection.execute("INSERT INTO former VALUES (zeroblob(?))", (FREE_BYTES_MAX + 8192,))
        connection.execute("DROP TABLE former")
    connection.close()
    assert path.stat().st_size > FREE_BYTES_MAX
    journal = opened(tmp_path)
    assert path.stat().st_size < 1024 * 1024
    assert journal.execution(replace(FIRST_OWNER, execution_id=ExecutionId("kept"))) is not None
    assert journal.generation == "first"
    journal.close()
