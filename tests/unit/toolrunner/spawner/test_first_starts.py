import asyncio

from support.chatd.streams.held_hubs import settle
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.spawner.client.first_starts import FirstStarts, WorkspaceEnded


class Starts:
    """Starts that last until they are told to end."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.first_starts = FirstStarts(at_a_time=2)
        self.sent: list[str] = []
        self.refused: list[str] = []
        self._tasks = tasks
        self._ends: dict[str, asyncio.Event] = {}

    async def make(self, *names: str) -> None:
        """Make starts, each in the workspace that its first letter names."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks.create_task(self._run(name))
        await settle()

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
        await settle()

    async def _run(self, name: str) -> None:
        try:
            async with self.first_starts.turn(WorkspaceId(name[0])):
                self.sent.append(name)
                await self._ends[name].wait()
        except WorkspaceEnded:
            self.refused.append(name)


async def test_starts_in_other_workspaces_pass_those_that_wait_for_their_namespaces() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        starts = Starts(tasks)
        await starts.make("a1")
        await starts.end("a1")
        await starts.make("b1", "c1", "d1", "e1")
        await starts.make("a2", "a3")
        assert starts.sent == ["a1", "b1", "c1", "a2", "a3"]
        await starts.end("b1")
        assert starts.sent == ["a1", "b1", "c1", "a2", "a3", "d1"]
        await starts.end("c1", "d1", "e1", "a2", "a3")
    assert starts.sent == ["a1", "b1", "c1", "a2", "a3", "d1", "e1"]


async def test_starts_that_wait_in_a_workspace_that_is_ended_are_not_sent() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        starts = Starts(tasks)
        await starts.make("a1", "b1", "c1")
        starts.first_starts.end(WorkspaceId("c"))
        # It was asked for after the end.
        await starts.make("c2")
        await starts.end("a1", "b1", "c2")
    assert (starts.sent, starts.refused) == (["a1", "b1", "c2"], ["c1"])


async def test_a_workspace_that_was_ended_needs_its_namespaces_anew() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        starts = Starts(tasks)
        await starts.make("a1")
        await starts.end("a1")
        starts.first_starts.end(WorkspaceId("a"))
        await starts.make("b1", "c1", "a2")
        assert starts.sent == ["a1", "b1", "c1"]
        await starts.end("b1", "c1", "a2")
