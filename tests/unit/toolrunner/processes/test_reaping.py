import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from parley.clock import FakeClock
from toolrunner.directories.workspaces import Workspaces
from toolrunner.journal.records import Effect, ProcessRecord, ProcessState
from toolrunner.journal.thread import JournalThread, open_journal
from toolrunner.primitives.domain import ChatId, Exit, ProcessId, Scope, WorkspaceId
from toolrunner.primitives.errors import ProcessNotFound
from toolrunner.processes.registry import Registry
from toolrunner.processes.retention import FINISHED_KEPT, REAP_EVERY_S, Reaper

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
    effect = Effect(name, None, "/Start", b"", lambda _: b"")
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
        reaping = tasks.create_task(Reaper(journal, registry, workspaces, clock).run())
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
