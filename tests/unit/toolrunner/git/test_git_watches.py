"""Many listeners of one workspace: one look for all, and each hears how it is now."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from parley.clock import FakeClock
from parley.tasks import BackgroundTasks, Starter
from support.host.supervised import supervision
from toolrunner.fileworker.git.protocol import Removed, Repositories, Repository, Unchanged
from toolrunner.fileworker.protocol import Answer, Request
from toolrunner.git.watches import (
    TRIES_MAX,
    Ended,
    GitEvent,
    GitWatches,
    Gone,
    Looked,
    Quiet,
    Snapshot,
)
from toolrunner.primitives.domain import Scope, WorkspaceId
from toolrunner.primitives.errors import FileWorkerGone, ReadOnly

SCOPE = Scope(WorkspaceId("w"))
ROOT, INNER = Repository("", branch="main"), Repository("inner", branch="main")


class Script:
    """Answers that a test gives, and how often they were asked for."""

    def __init__(self) -> None:
        self.streams = 0
        self.open = 0
        self.answers: asyncio.Queue[Answer | Exception] = asyncio.Queue()

    async def stream(
        self, scope: Scope, request: Request, *, limit_s: float
    ) -> AsyncGenerator[Answer, None]:
        self.streams += 1
        self.open += 1
        try:
            while True:
                answer = await self.answers.get()
                if isinstance(answer, Exception):
                    raise answer
                yield answer
        finally:
            self.open -= 1

    def say(self, *answers: Answer | Exception) -> None:
        for answer in answers:
            self.answers.put_nowait(answer)


class Stage:
    """Watches over a script."""

    def __init__(self, tasks: Starter) -> None:
        self.clock = FakeClock()
        self.script = Script()
        self.watches = GitWatches(self.script, self.clock, tasks)

    def looked(self, repository: Repository) -> Looked:
        return Looked(repository, self.clock.now())

    def snapshot(self, *repositories: Repository) -> Snapshot:
        return Snapshot(tuple(map(self.looked, repositories)))


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        stage = Stage(tasks)
        yield stage
        stage.watches.stop()


async def settled() -> None:
    await asyncio.to_thread(lambda: None)


async def take(events: AsyncGenerator[GitEvent, None], count: int) -> list[GitEvent]:
    return [await anext(events) for _ in range(count)]


async def test_listeners_share_a_stream_and_the_last_one_ends_it() -> None:
    async with stage() as on:
        on.script.say(Repositories((ROOT, INNER)))
        async with aclosing(on.watches.watch(SCOPE)) as first:
            assert await anext(first) == on.snapshot(ROOT, INNER)
            async with aclosing(on.watches.watch(SCOPE)) as second:
                assert await anext(second) == on.snapshot(ROOT, INNER)
                on.script.say(Removed("inner"), Unchanged())
                assert await take(first, 1) == await take(second, 1) == [Gone("inner")]
            await settled()
            assert (on.script.streams, on.script.open) == (1, 1)
        await settled()
        assert on.script.open == 0


async def test_a_slow_listener_hears_only_how_each_repository_is_now() -> None:
    async with stage() as on, aclosing(on.watches.watch(SCOPE)) as events:
        on.script.say(Repositories((ROOT,)))
        await anext(events)
        newest = Repository("", branch="b999")
        for number in range(1000):
            on.script.say(Repository("", branch=f"b{number}"), INNER, Unchanged())
        while not on.script.answers.empty():
            await settled()
        assert await take(events, 3) == [on.looked(newest), on.looked(INNER), Quiet()]


async def test_a_program_that_ends_is_followed_by_another_that_begins_with_all() -> None:
    async with stage() as on, aclosing(on.watches.watch(SCOPE)) as events:
        on.script.say(Repositories((ROOT,)))
        assert await anext(events) == on.snapshot(ROOT)
        on.script.say(FileWorkerGone(), Repositories((INNER,)))
        assert await anext(events) == on.snapshot(INNER)
        assert on.script.streams == 2


async def test_programs_that_never_answer_and_workspaces_that_are_gone_end_it() -> None:
    async with stage() as on:
        for causes in ([FileWorkerGone()] * TRIES_MAX, [ReadOnly("x")]):
            async with aclosing(on.watches.watch(SCOPE)) as events:
                on.script.say(*causes)
                assert [event async for event in events] == [Ended(is_workspace_gone=True)]
        async with aclosing(on.watches.watch(SCOPE)) as events:
            on.script.say(Repositories(()))
            assert await anext(events) == Snapshot(())


async def test_stopping_ends_every_stream_and_lets_none_begin() -> None:
    async with stage() as on, aclosing(on.watches.watch(SCOPE)) as events:
        on.script.say(Repositories((ROOT,)))
        await anext(events)
        on.watches.stop()
        assert [event async for event in events] == [Ended()]
        assert [event async for event in on.watches.watch(SCOPE)] == [Ended()]


async def test_a_failure_that_nobody_expects_ends_the_streams_of_its_workspace() -> None:
    async with asyncio.timeout(5), BackgroundTasks(supervision()) as tasks:
        on = Stage(tasks)
        async with aclosing(on.watches.watch(SCOPE)) as events:
            on.script.say(Repositories((ROOT,)), RuntimeError("a bug"))
            told = [event async for event in events]
        assert told[-1] == Ended(is_workspace_gone=True)
        on.watches.stop()
