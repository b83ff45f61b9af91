"""Uploads that take places and time: no workspace has all of them, and none is held for ever."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from parley.clock import FakeClock
from support.toolrunner.files import FileNode
from toolrunner.files.service import SILENCE_S, UPLOADS_MAX, UPLOADS_PER_WORKSPACE_MAX
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker.protocol import StartUpload
from toolrunner.primitives.domain import WorkspaceId


async def test_slow_uploads_of_one_workspace_leave_places_to_the_others(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    clock, may_end = FakeClock(), asyncio.Event()
    begun = asyncio.Semaphore(0)

    async def slow() -> AsyncIterator[bytes]:
        begun.release()
        await may_end.wait()
        yield b"x"

    async def quick() -> AsyncIterator[bytes]:
        yield b"x"

    async with FileNode.started(tmp_path_factory.mktemp("n"), clock) as node:
        other = replace(node.scope, workspace_id=WorkspaceId("other"))
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            for number in range(UPLOADS_PER_WORKSPACE_MAX):
                start = StartUpload(f"u{number}", f"f{number}", 1)
                tasks.create_task(node.room.stage(node.scope, start, slow()))
            for _ in range(UPLOADS_PER_WORKSPACE_MAX):
                await begun.acquire()
            with pytest.raises(FileRefused) as refused:
                await node.room.stage(node.scope, StartUpload("v", "g", 1), quick())
            await node.room.stage(other, StartUpload("w", "g", 1), quick())
            may_end.set()
        await node.room.stage(node.scope, StartUpload("v", "g", 1), quick())
    assert (refused.value.reason, refused.value.metadata) == (
        Reason.NODE_FULL,
        {"resource": "uploads"},
    )
    assert UPLOADS_PER_WORKSPACE_MAX < UPLOADS_MAX


async def test_an_upload_that_falls_silent_is_given_up_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    clock = FakeClock()
    is_silent = asyncio.Event()

    async def silent() -> AsyncIterator[bytes]:
        yield b"x"
        is_silent.set()
        await asyncio.Event().wait()

    async with FileNode.started(tmp_path_factory.mktemp("n"), clock) as node:
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            staging = tasks.create_task(refusal(node, silent()))
            await is_silent.wait()
            assert list(node.root.glob("d/.parley-*"))
            # One of them is the watch over idle programs.
            await clock.until_sleeping(2)
            clock.advance(SILENCE_S)
        assert staging.result() is Reason.INVALID_REQUEST
        assert list(node.root.iterdir()) == []


async def refusal(node: FileNode, chunks: AsyncIterator[bytes]) -> Reason:
    with pytest.raises(FileRefused) as refused:
        await node.room.stage(node.scope, StartUpload("u", "d/f", 2), chunks)
    return refused.value.reason
