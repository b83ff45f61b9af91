"""The log of a preparation, as a watcher of its workspace receives it."""

import asyncio

from chatd.workspaces.domain.ports import LogLine
from chatd.workspaces.domain.workspace import State
from chatd.workspaces.engine.watchers import Changes
from chatd.workspaces.rpc.watch import WorkspaceWatch
from parley.clock import FakeClock
from support.chatd.workspaces.in_memory_workspaces import InMemoryWorkspaces
from support.chatd.workspaces.workspace_values import NOON, WORKSPACE, workspace

#: Two full pages and a part of the third.
LINES_COUNT = 1_200


async def test_a_long_log_is_sent_page_after_page_without_a_pause() -> None:
    clock = FakeClock(NOON)
    row = workspace(State.READY)
    store = InMemoryWorkspaces(clock, {WORKSPACE: row})
    lines = [LogLine(each, NOON, "setup", f"line {each}") for each in range(1, LINES_COUNT + 1)]
    await store.log(WORKSPACE, row.epoch, lines)
    watch = WorkspaceWatch(store, Changes(clock), clock, asyncio.Event())
    sent: list[int] = []
    # The clock stands still, so that a watch that waits between pages does not go on.
    async with asyncio.timeout(20):
        async for event in watch.follow(row, 0):
            if event.HasField("log_line"):
                sent.append(event.log_line.sequence)
            if len(sent) == LINES_COUNT:
                break
    assert sent == list(range(1, LINES_COUNT + 1))
