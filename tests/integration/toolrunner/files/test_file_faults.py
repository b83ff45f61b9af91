"""Files when things go wrong: repeated requests, dead programs, crashes and racing links."""

import asyncio
import os
import select
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import execution_pb2
from parley.api.workspace.v1 import execution_service_pb2 as executions_api
from parley.api.workspace.v1 import file_service_pb2 as api
from parley.rpc import problem_of
from support.toolrunner.files import FileNode, Files
from support.toolrunner.node import Client, House, connected, node, running, toolrunner
from toolrunner.primitives.errors import FileWorkerGone

FILES = 100


@pytest.fixture
def files(client: Client, house: House) -> Files:
    return Files.of(client, house)


async def reason_of(call: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call  # type: ignore[misc]
    problem = problem_of(refused.value)
    return problem.status, problem.reason


async def state_of(client: Client, key: execution_pb2.ExecutionKey) -> str:
    request = executions_api.GetExecutionRequest(key=key)
    execution = (await client.executions.GetExecution(request)).execution
    return execution_pb2.ExecutionState.Name(execution.state).removeprefix("EXECUTION_STATE_")


async def test_the_same_execution_changes_a_file_once(files: Files, client: Client) -> None:
    files.put("a", "x\n")
    key = await client.key("e1")
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(files.edit(("a", "x", "xx"), key=key)) for _ in range(20)]
    answers = [call.result() for call in calls]
    assert all(answer == answers[0] for answer in answers)
    assert files.bytes_of("a") == b"xx\n"
    again = await files.edit(("a", "x", "xx"), key=await client.key("e1", epoch=2))
    assert (again, files.bytes_of("a")) == (answers[0], b"xx\n")
    reused = (grpc.StatusCode.ALREADY_EXISTS, "EXECUTION_ID_REUSED")
    newer = await client.key("e1", epoch=2)
    assert await reason_of(files.edit(("a", "x", "y"), key=newer)) == reused
    stale = (grpc.StatusCode.FAILED_PRECONDITION, "STALE_OWNER")
    assert await reason_of(files.edit(("a", "x", "xx"), key=key)) == stale


async def test_a_repeated_write_is_answered_by_the_journal_after_a_restart(house: House) -> None:
    async with node(house), connected(house) as client:
        files = Files.of(client, house)
        key = await client.key("e1")
        first = await files.write("a", b"1\n", key=key)
        context = client.context
    (files.root / "a").write_text("by hand\n")
    async with node(house), connected(house) as other:
        other.context, other.chat_id = context, context.chat_id
        again = await Files(other, files.root).write("a", b"1\n", key=key)
    assert (again, files.bytes_of("a")) == (first, b"by hand\n")


async def test_a_refused_change_has_never_been_and_may_come_again(
    files: Files, client: Client
) -> None:
    files.put("a", "x\n")
    key = await client.key("e1")
    assert await reason_of(files.write("a", b"y\n", key=key, create_only=True)) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "PATH_EXISTS",
    )
    assert await state_of(client, key) == "NEVER_SEEN"
    (files.root / "a").unlink()
    await files.write("a", b"y\n", key=key, create_only=True)
    assert (await state_of(client, key), files.bytes_of("a")) == ("FINISHED", b"y\n")


async def test_a_change_that_was_cancelled_first_is_not_made(files: Files, client: Client) -> None:
    key = await client.key("e1")
    cancel = executions_api.CancelExecutionRequest(request_id=client.new_id(), key=key)
    await client.executions.CancelExecution(cancel)
    cancelled = (grpc.StatusCode.ABORTED, "EXECUTION_CANCELLED")
    assert await reason_of(files.write("a", b"y\n", key=key)) == cancelled
    assert os.listdir(files.root) == []


async def test_a_dead_program_is_replaced_and_nobody_notices(files: Files, client: Client) -> None:
    files.put("a", "x\n")
    await files.read("a")
    [pid] = running(str(files.root))
    os.kill(pid, signal.SIGSTOP)
    key = await client.key("e1")
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(files.read("b"))
        editing = tasks.create_task(files.edit(("a", "x", "xx"), key=key))
        files.put("b", "b\n")
        while await state_of(client, key) != "STARTED":
            pass
        os.kill(pid, signal.SIGKILL)
    assert (reading.result().text, editing.result().applied) == ("b\n", True)
    assert files.bytes_of("a") == b"xx\n"
    assert pid not in running(str(files.root))


async def test_nothing_is_left_of_an_upload_whose_program_died(
    files: Files, client: Client
) -> None:
    is_begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def pieces() -> AsyncIterator[api.UploadFileRequest]:
        head = api.UploadFileHead(context=client.context, request_id="up", path="d/f", size_bytes=6)
        yield api.UploadFileRequest(head=head)
        yield api.UploadFileRequest(chunk=b"abc")
        is_begun.set()
        await may_go_on.wait()
        yield api.UploadFileRequest(chunk=b"def")

    async def upload() -> api.UploadFileResponse:
        return await client.files.UploadFile(pieces(), timeout=15)

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        uploading = tasks.create_task(upload())
        await is_begun.wait()
        await asyncio.to_thread(until, lambda: bool(files.leavings()))
        [pid] = running(str(files.root))
        os.kill(pid, signal.SIGKILL)
        may_go_on.set()
    # The channel has sent it again.
    assert uploading.result().change.size_bytes == 6
    assert (files.leavings(), files.bytes_of("d/f")) == ([], b"abcdef")


def until(is_so: Callable[[], bool]) -> None:
    """Look again and again until something is so."""
    give_up_s = time.monotonic() + 15
    while not is_so():
        assert time.monotonic() < give_up_s, "it never was"
        select.select([], [], [], 0.001)


def many(files: Files) -> list[Path]:
    return [files.put(f"f{number:02}", "old\n") for number in range(FILES)]


def edits() -> list[tuple[str, str, str]]:
    return [(f"f{number:02}", "old", "new") for number in range(FILES)]


async def test_a_program_that_dies_halfway_leaves_all_files_as_they_were(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with FileNode.started(tmp_path_factory.mktemp("n")) as there:
        paths = [there.put(f"f{number:02}", "old\n") for number in range(FILES)]
        await there.change("e0", [("f00", "old", "old")])
        [pid] = running(str(there.root))
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(kill_at_change, pid, paths[0]))
            with pytest.raises(FileWorkerGone):
                await there.change("e1", edits())
        assert {path.read_text() for path in paths} == {"old\n"}
        assert list(there.root.glob(".parley-*")) == []
        await there.change("e1", edits())
        assert {path.read_text() for path in paths} == {"new\n"}


def kill_at_change(pid: int, path: Path) -> None:
    """Kill a process in the moment that a file is replaced."""
    inode = path.stat().st_ino
    give_up_s = time.monotonic() + 20
    while path.stat().st_ino == inode:
        assert time.monotonic() < give_up_s, "it was never replaced"
    os.kill(pid, signal.SIGKILL)


async def test_a_service_that_is_killed_halfway_takes_the_change_back(house: House) -> None:
    async with toolrunner(house) as process, connected(house) as client:
        files = Files.of(client, house)
        paths = many(files)
        key = await client.key("e1")
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            tasks.create_task(reason_of(files.edit(*edits(), key=key)))
            await asyncio.to_thread(kill_at_change, process.pid, paths[0])
        await process.wait()
    async with toolrunner(house), connected(house) as other:
        other.context, other.chat_id = client.context, client.chat_id
        page = await Files(other, files.root).read(f"f{FILES - 1:02}")
        assert page.text == "old\n"
        assert ({path.read_text() for path in paths}, files.leavings()) == ({"old\n"}, [])
        assert await state_of(other, key) == "UNKNOWN"
        unknown = (grpc.StatusCode.ABORTED, "OUTCOME_UNKNOWN")
        assert await reason_of(Files(other, files.root).edit(*edits(), key=key)) == unknown
