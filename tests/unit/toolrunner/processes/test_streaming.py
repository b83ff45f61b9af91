import asyncio
from pathlib import Path

from parley.clock import FakeClock
from toolrunner.directories.workspaces import Workspaces
from toolrunner.journal.records import ProcessRecord, ProcessState
from toolrunner.journal.thread import open_journal
from toolrunner.primitives.domain import ChatId, ProcessId, Scope, WorkspaceId
from toolrunner.processes.live_process import LiveProcess, Pipes
from toolrunner.processes.output.buffer import KeptOutput
from toolrunner.processes.output.log import OutputLog
from toolrunner.processes.output.stream import Chunk, Closed, CloseReason, Heartbeat, OutputStream
from toolrunner.processes.registry import Registry

CLOCK = FakeClock()
SCOPE = Scope(WorkspaceId("w"), ChatId("c"))
RECORD = ProcessRecord(
    process_id=ProcessId("p"),
    workspace_id=SCOPE.workspace_id,
    chat_id=SCOPE.chat_id,
    request_id="r",
    command="true",
    workdir="/",
    is_background=False,
    state=ProcessState.RUNNING,
    started_at=CLOCK.now(),
)


async def test_silence_is_told_and_who_falls_behind_begins_anew(tmp_path: Path) -> None:
    opened = open_journal(tmp_path / "j.sqlite", new_generation="g", boot_id="b", clock=CLOCK)
    async with asyncio.timeout(5), opened as journal:
        registry = Registry(journal=journal, workspaces=Workspaces(tmp_path), clock=CLOCK)
        live = LiveProcess(RECORD, KeptOutput(OutputLog(tmp_path, "p", 1000)), 0.0, Pipes())
        registry.enter(live)
        stream = await OutputStream.open(registry, SCOPE, RECORD.process_id, 0)
        events = stream.events(follows=True, heartbeat_s=0.01)
        assert await anext(events) == Heartbeat()
        live.output.append(b"first")
        assert await anext(events) == Chunk(b"first", 0)
        for _ in range(10):
            live.output.append(b"x" * 60_000)
        seen = [await anext(events)]
        while isinstance(seen[-1], Chunk):
            seen.append(await anext(events))
        assert seen[-1] == Closed(CloseReason.RESYNC)
        await events.aclose()
        live.close()
