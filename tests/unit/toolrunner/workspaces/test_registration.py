"""A node that makes itself known: to whoever answers, as often as needed, and obeys."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

from parley.clock import FakeClock
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import StalePlacement
from toolrunner.workspaces.domain.placement import Hosted, HostState
from toolrunner.workspaces.node.registration import (
    HeartbeatAnswer,
    Instruction,
    Order,
    Registered,
    Registration,
    RegistrationStale,
    RegistryUnreachable,
)

W = WorkspaceId("w")
READY = Hosted(W, 1, HostState.READY)
BEAT_S = 10.0


@dataclass
class ScriptedRegistry:
    """A chatd that answers as a test says, and remembers what it heard."""

    answers: list[HeartbeatAnswer | Exception] = field(default_factory=list)
    refusals: list[Exception] = field(default_factory=list)
    heard: list[tuple[str, int, tuple[Hosted, ...]]] = field(default_factory=list)
    registered: list[tuple[Hosted, ...]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    async def register(self, request_id: str, hosted: tuple[Hosted, ...]) -> Registered:
        if self.refusals:
            raise self.refusals.pop(0)
        self.registered.append(hosted)
        return Registered(len(self.registered), BEAT_S)

    async def heartbeat(
        self, request_id: str, registration_epoch: int, changed: tuple[Hosted, ...]
    ) -> HeartbeatAnswer:
        self.heard.append((request_id, registration_epoch, changed))
        answer = self.answers.pop(0) if self.answers else HeartbeatAnswer()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def leave(self, request_id: str, registration_epoch: int) -> None:
        self.left.append(registration_epoch)


@dataclass
class ObedientFake:
    """A host that remembers what it was told to do."""

    is_draining: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    done: list[tuple[str, WorkspaceId, int]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)

    async def stop(self, request: None, workspace_id: WorkspaceId, epoch: int) -> bytes:
        if epoch < 2:
            raise StalePlacement(workspace_id, epoch, 2)
        self.done.append(("stop", workspace_id, epoch))
        return b""

    async def remove(self, request: None, workspace_id: WorkspaceId, epoch: int) -> bytes:
        if self.failures:
            raise self.failures.pop()
        self.done.append(("remove", workspace_id, epoch))
        return b""


@dataclass
class Stage:
    """A registration that runs."""

    registry: ScriptedRegistry
    host: ObedientFake
    clock: FakeClock
    hosted: list[Hosted]
    registration: Registration = field(init=False)

    def __post_init__(self) -> None:
        numbers = count(1)
        self.registration = Registration(
            registry=self.registry,
            host=self.host,
            hosted=lambda: tuple(self.hosted),
            clock=self.clock,
            rng=lambda: 0.0,
            new_id=lambda: f"r{next(numbers)}",
        )

    async def beat(self) -> None:
        """Let the time to the next heartbeat pass."""
        self.clock.advance(await self.clock.until_sleeping())
        await self.clock.until_sleeping()


@asynccontextmanager
async def stage(registry: ScriptedRegistry) -> AsyncIterator[Stage]:
    made = Stage(registry, ObedientFake(), FakeClock(), [READY])
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(made.registration.run())
        yield made
        running.cancel()


async def test_a_node_registers_with_all_it_hosts_and_beats_with_what_changed() -> None:
    async with stage(ScriptedRegistry()) as node:
        assert await node.clock.until_sleeping() == BEAT_S
        await node.beat()
        node.hosted[:] = [Hosted(W, 1, HostState.STOPPED)]
        await node.beat()
        node.hosted.clear()
        await node.beat()
        await node.beat()
    assert node.registry.registered == [(READY,)]
    assert [changed for _, _, changed in node.registry.heard] == [
        (),
        (Hosted(W, 1, HostState.STOPPED),),
        (Hosted(W, 1, HostState.REMOVED),),
        (),
    ]


async def test_a_workspace_that_someone_stays_in_is_told_of_with_every_heartbeat() -> None:
    waited_for = Hosted(W, 1, HostState.READY, waits=1)
    async with stage(ScriptedRegistry()) as node:
        node.hosted[:] = [waited_for]
        await node.beat()
        await node.beat()
    assert [changed for _, _, changed in node.registry.heard] == [(waited_for,), (waited_for,)]


async def test_a_change_is_told_at_once() -> None:
    async with stage(ScriptedRegistry()) as node:
        await node.clock.until_sleeping()
        node.hosted[:] = [Hosted(W, 2, HostState.READY)]
        node.host.changed.set()
        while await node.clock.until_sleeping() == BEAT_S:
            await _turn()
        await node.beat()
        assert node.clock.monotonic() < 1
    assert node.registry.heard == [("r2", 1, (Hosted(W, 2, HostState.READY),))]


async def test_a_heartbeat_that_is_not_answered_is_sent_again_with_the_same_name() -> None:
    registry = ScriptedRegistry([RegistryUnreachable("gone"), RegistryUnreachable("gone")])
    async with stage(registry) as node:
        await node.clock.until_sleeping()
        node.hosted.clear()
        for _ in range(4):
            await node.beat()
    gone = (Hosted(W, 1, HostState.REMOVED),)
    assert registry.heard[:4] == [
        ("r2", 1, gone),
        ("r2", 1, gone),
        ("r2", 1, gone),
        ("r3", 1, ()),
    ]


async def test_a_node_that_is_not_known_any_more_registers_again() -> None:
    registry = ScriptedRegistry([RegistrationStale()])
    async with stage(registry) as node:
        await node.beat()
        await node.beat()
    assert len(registry.registered) == 2
    assert [epoch for _, epoch, _ in registry.heard] == [1, 2]


async def test_a_node_that_nobody_takes_asks_ever_less_often() -> None:
    registry = ScriptedRegistry(refusals=[RegistryUnreachable("down")] * 3)
    async with stage(registry) as node:
        delays = []
        for _ in range(4):
            delays.append(await node.clock.until_sleeping())
            await node.beat()
    assert delays == [0.25, 0.5, 1.0, BEAT_S]


async def test_orders_are_obeyed_and_those_for_older_placements_left_alone() -> None:
    orders = (
        Order(W, 1, Instruction.STOP),
        Order(W, 2, Instruction.STOP),
        Order(WorkspaceId("v"), 3, Instruction.REMOVE),
    )
    async with stage(ScriptedRegistry([HeartbeatAnswer(is_draining=True, orders=orders)])) as node:
        await node.beat()
        assert node.host.is_draining
        await node.beat()
        assert not node.host.is_draining
    assert node.host.done == [("stop", W, 2), ("remove", WorkspaceId("v"), 3)]


async def test_an_order_that_could_not_be_carried_out_comes_again() -> None:
    """Nothing of the workspace changes by the failure, so nothing else would tell of it."""
    remove = HeartbeatAnswer(orders=(Order(W, 1, Instruction.REMOVE),))
    async with stage(ScriptedRegistry([remove, remove])) as node:
        node.host.failures.append(OSError("the disk is full"))
        await node.beat()
        await node.beat()
        await node.beat()
    assert [changed for _, _, changed in node.registry.heard] == [(), (READY,), ()]
    assert node.host.done == [("remove", W, 1)]


async def test_everything_is_told_once_a_minute_because_what_is_wanted_of_it_may_change() -> None:
    """A workspace that was stopped here and deleted in chatd never changes by itself."""
    async with stage(ScriptedRegistry()) as node:
        for _ in range(12):
            await node.beat()
        assert node.clock.monotonic() == 120
    reported = [changed for _, _, changed in node.registry.heard]
    assert reported == [*[()] * 5, (READY,)] * 2


async def test_a_node_that_leaves_says_so() -> None:
    async with stage(ScriptedRegistry()) as node:
        await node.clock.until_sleeping()
        await node.registration.leave()
    assert node.registry.left == [1]
    await Stage(node.registry, node.host, node.clock, []).registration.leave()
    assert node.registry.left == [1]


async def _turn() -> None:
    """Let everyone else go on once."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, None)
    await future
