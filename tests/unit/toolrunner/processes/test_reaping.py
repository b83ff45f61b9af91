import asyncio
import shutil
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from parley.clock import FakeClock
from toolrunner.directories.workspaces import Workspaces
from toolrunner.journal.journal import Journal
from toolrunner.journal.records import (
    Effect,
    ExecutionState,
    FileEffect,
    Key,
    ProcessRecord,
    ProcessState,
)
from toolrunner.journal.thread import JournalThread, open_journal
from toolrunner.primitives.domain import (
    ChatId,
    ExecutionId,
    Exit,
    ProcessId,
    Scope,
    WorkspaceId,
)
from toolrunner.primitives.errors import ProcessNotFound
from toolrunner.processes.registry import Registry
from toolrunner.processes.retention import (
    ACKNOWLEDGED_KEPT,
    FINISHED_KEPT,
    PRUNED_AT_ONCE_MAX,
    REAP_EVERY_S,
    REMOVED_KEPT,
    Reaper,
)

WORKSPACE = WorkspaceId("w")


async def exited(journal: JournalThread, name: str, clock: FakeClock) -> ProcessRecord:
    record = ProcessRecord(
        process_id=ProcessId(name),
        workspace_id=WORKSPACE,
        chat_id=ChatId("c"),
        request_id=name,
        command="true",
        workdir="/",
        is_background=False,
        state=ProcessState.STARTING,
        started_at=clock.now(),
    )
    effect = Effect(name, None, "/Start", b"", lambda _: b"", record.workspace_id)
    await journal.run(lambda j: j.begin(effect, record))
    ended = structs.replace(
        record, state=ProcessState.EXITED, exit=Exit(exit_code=0), ended_at=clock.now()
    )
    await journal.run(lambda j: j.finish(effect, b"", ended))
    return ended


async def test_what_is_old_goes_by_the_clock_without_anyone_asking(tmp_path: Path) -> None:
    clock = FakeClock()
    workspaces = Workspaces(tmp_path / "workspaces")
    logs = workspaces.prepared(WORKSPACE).logs
    opened = open_journal(tmp_path / "j.sqlite", new_generation="g", boot_id="b", clock=clock)
    async with asyncio.timeout(5), opened as journal, asyncio.TaskGroup() as tasks:
        registry = Registry(journal=journal, workspaces=workspaces, clock=clock)
        reaping = tasks.create_task(
            Reaper(journal, registry, workspaces, clock, lambda _: None).run()
        )
        await exited(journal, "old", clock)
        (logs / "old.0.log").write_bytes(b"output")
        assert await clock.until_sleeping() == REAP_EVERY_S
        clock.advance((FINISHED_KEPT - timedelta(seconds=30)).total_seconds())
        young = await exited(journal, "young", clock)
        (logs / "young.0.log").write_bytes(b"output")
        await clock.until_sleeping()
        assert len(list(logs.iterdir())) == 2
        clock.advance(REAP_EVERY_S)
        await clock.until_sleeping()
        assert [path.name for path in logs.iterdir()] == ["young.0.log"]
        assert await journal.run(lambda j: j.processes(WORKSPACE)) == (young,)
        # To its own chat, too, it looks like one that never was.
        scope = Scope(WORKSPACE, ChatId("c"))
        assert await registry.get(scope, ProcessId("young")) == young
        with pytest.raises(ProcessNotFound):
            await registry.get(scope, ProcessId("old"))
        reaping.cancel()


async def test_a_short_time_for_removed_workspaces_makes_it_look_as_often(tmp_path: Path) -> None:
    clock, workspaces = FakeClock(), Workspaces(tmp_path / "workspaces")
    directory = workspaces.prepared(WORKSPACE).directory
    opened = open_journal(tmp_path / "j.sqlite", new_generation="g", boot_id="b", clock=clock)
    async with asyncio.timeout(5), opened as journal, asyncio.TaskGroup() as tasks:
        registry = Registry(journal=journal, workspaces=workspaces, clock=clock)
        kept = timedelta(seconds=2)
        reaper = Reaper(journal, registry, workspaces, clock, lambda _: None, kept)
        reaping = tasks.create_task(reaper.run())
        await exited(journal, "old", clock)
        shutil.rmtree(directory)
        for _ in range(2):
            assert await clock.until_sleeping() == kept.total_seconds()
            clock.advance(kept.total_seconds())
        await clock.until_sleeping()
        assert await journal.run(lambda j: j.processes(WORKSPACE)) == ()
        reaping.cancel()


async def test_acknowledged_entries_leave_tombstones_for_as_long_as_the_workspace_exists(
    tmp_path: Path,
) -> None:
    clock, workspaces = FakeClock(), Workspaces(tmp_path / "workspaces")
    directory = workspaces.prepared(WORKSPACE).directory
    keys = [
        Key(ExecutionId(f"e{number}"), ChatId("c"), 1, "g", WORKSPACE)
        for number in range(PRUNED_AT_ONCE_MAX + 1)
    ]

    def finish(journal: Journal) -> None:
        for key in keys:
            effect = FileEffect(key.execution_id, key, "/Write", b"", key.workspace_id)
            journal.begin(effect, None)
            journal.finish(effect, b"response", None)
        journal.acknowledge([key.execution_id for key in keys], "g")

    pruned: list[int] = []
    opened = open_journal(tmp_path / "j.sqlite", new_generation="g", boot_id="b", clock=clock)
    async with asyncio.timeout(20), opened as journal:
        reaper = Reaper(
            journal,
            Registry(journal=journal, workspaces=workspaces, clock=clock),
            workspaces,
            clock,
            pruned.append,
        )
        await journal.run(finish)
        clock.advance(ACKNOWLEDGED_KEPT.total_seconds() + 1)
        await reaper.reap()
        assert pruned == [PRUNED_AT_ONCE_MAX, 1]
        for key in (keys[0], keys[-1]):
            found = await journal.run(partial(Journal.execution, key=key))
            assert found is not None
            assert (found.state, found.started_at) == (ExecutionState.ACKNOWLEDGED, None)
        shutil.rmtree(directory)
        await reaper.reap()
        assert await journal.run(partial(Journal.execution, key=keys[0])) is None
        recorded = partial(Journal.recorded_workspaces, finished_before=clock.now())
        assert await journal.run(recorded) == ()


async def test_a_process_that_ends_after_its_workspace_leaves_nothing_in_the_journal(
    tmp_path: Path,
) -> None:
    clock, workspaces = FakeClock(), Workspaces(tmp_path / "workspaces")
    directory = workspaces.prepared(WORKSPACE).directory
    opened = open_journal(tmp_path / "j.sqlite", new_generation="g", boot_id="b", clock=clock)
    async with asyncio.timeout(20), opened as journal:
        registry = Registry(journal=journal, workspaces=workspaces, clock=clock)
        reaper = Reaper(journal, registry, workspaces, clock, lambda _: None)
        # A request of a user, whose entry ends with the start of the process.
        record = ProcessRecord(
            process_id=ProcessId("p"),
            workspace_id=WORKSPACE,
            chat_id=ChatId("c"),
            request_id="r",
            command="sleep 900 # private",
            workdir="/",
            is_background=True,
            state=ProcessState.RUNNING,
            started_at=clock.now(),
        )
        effect = Effect("r", None, "/Start", b"", lambda _: b"", WORKSPACE)
        await journal.run(lambda j: j.begin(effect, record))
        await journal.run(lambda j: j.finish(effect, b"private", record))
        shutil.rmtree(directory)
        clock.advance(REMOVED_KEPT.total_seconds() + 1)
        await reaper.reap()
        assert await journal.run(lambda j: j.processes(WORKSPACE)) == (record,)

        ended = structs.replace(
            record, state=ProcessState.EXITED, exit=Exit(exit_code=0), ended_at=clock.now()
        )
        await journal.run(lambda j: j.record(ended))
        clock.advance(REMOVED_KEPT.total_seconds() + 1)
        await reaper.reap()
        assert await journal.run(lambda j: j.processes(WORKSPACE)) == ()
    assert b"private" not in (tmp_path / "j.sqlite").read_bytes()
