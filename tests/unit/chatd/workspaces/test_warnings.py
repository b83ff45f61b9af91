"""The warning before a workspace stops by itself, as somebody sees it who follows it."""

import asyncio
from datetime import timedelta

import pytest

from chatd.primitives.domain.ids import WorkerId
from chatd.workspaces.domain.workspace import State
from chatd.workspaces.engine.timers import WorkspaceTimers
from chatd.workspaces.engine.watchers import Changes
from chatd.workspaces.rpc.watch import WorkspaceWatch
from parley.clock import FakeClock
from support.chatd.workspaces.in_memory_workspaces import InMemoryNodes, InMemoryWorkspaces
from support.chatd.workspaces.workspace_values import NOON, WORKSPACE, workspace

LIFE_S = 2 * 3600.0
BEGUN_S = LIFE_S - 600.0


class Stage:
    """A workspace that stops in ten minutes, its keeper, and somebody who follows it."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOON + timedelta(seconds=BEGUN_S))
        self.store = InMemoryWorkspaces(self.clock, {WORKSPACE: workspace(State.READY)})
        self.told: list[tuple[str, float]] = []

    async def followed(self, *, is_using: bool, for_s: float) -> None:
        """Follow for a while, and note what is told and when, in seconds of its life."""
        nodes = InMemoryNodes(self.clock)
        workspace_timers = WorkspaceTimers(
            WorkerId("w"), self.store, nodes, self.clock, jitter=lambda: 0.5
        )
        watch = WorkspaceWatch(self.store, Changes(self.clock), self.clock, asyncio.Event())

        async def follow() -> None:
            events = watch.follow(self.store.rows[WORKSPACE], 0, is_using=is_using)
            async for event in events:
                kind = event.WhichOneof("kind") or ""
                self.told.append((kind, BEGUN_S + self.clock.monotonic()))

        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(workspace_timers.run()), tasks.create_task(follow())]
            while self.clock.monotonic() < for_s:
                self.clock.advance(await self.clock.until_sleeping())
                await self.clock.until_sleeping()
            for each in running:
                each.cancel()

    def times(self, kind: str) -> list[float]:
        return [at_s for told, at_s in self.told if told == kind]


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_who_only_follows_is_warned_five_minutes_before_and_sees_it_stop(
    stage: Stage,
) -> None:
    await stage.followed(is_using=False, for_s=620)
    (warned_s,) = stage.times("autostop_warning")
    # The keeper goes round every 4 s, and whoever follows looks every 2 s.
    assert LIFE_S - 300 <= warned_s <= LIFE_S - 300 + 8
    assert stage.store.rows[WORKSPACE].state is State.STOPPING


async def test_who_uses_it_by_following_keeps_it_and_is_not_warned(stage: Stage) -> None:
    await stage.followed(is_using=True, for_s=620)
    assert stage.times("autostop_warning") == []
    assert stage.store.rows[WORKSPACE].state is State.READY
