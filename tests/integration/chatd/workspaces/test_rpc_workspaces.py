"""Workspaces over gRPC for people: who is let in, what nodes are asked, what comes back."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.workspace.v1 import process_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.identity import User, UserId
from parley.postgres import Pool
from parley.rpc import Problem, acting_for, problem_of
from support.chatd.chats.chat_people import BOB_ID, EVES_GROUP, Person
from support.chatd.chats.served_chats import ServedChats, served_chats
from support.chatd.workspaces.fake_toolrunner import FakeToolrunner
from support.chatd.workspaces.fake_toolrunner import served as served_toolrunner
from support.chatd.workspaces.workspace_visits import start

NOBODYS = "00000000-0000-0000-0000-0000000000ff"
#: More often than any channel tries again by itself.
ALWAYS = 100


@pytest.fixture
def toolrunner() -> FakeToolrunner:
    return FakeToolrunner()


@pytest.fixture
async def served(
    pool: Pool, tmp_path: Path, toolrunner: FakeToolrunner
) -> AsyncIterator[ServedChats]:
    async with (
        served_toolrunner(toolrunner, tmp_path) as channels,
        served_chats(pool, tmp_path, toolrunners=channels) as running,
    ):
        yield running


async def download(person: Person, **asked: Any) -> list[api.DownloadWorkspaceFileResponse]:
    with acting_for(User(UserId(person.id), person.role)):
        call = person.workspaces.DownloadWorkspaceFile(api.DownloadWorkspaceFileRequest(**asked))
    return [piece async for piece in call]


def reads(workspace_id: str, process_id: str) -> tuple[Any, ...]:
    return (
        api.ListWorkspaceProcessesRequest(workspace_id=workspace_id),
        api.WaitWorkspaceOutputRequest(workspace_id=workspace_id, process_id=process_id),
        api.ListWorkspaceDirectoryRequest(workspace_id=workspace_id),
    )


def changes(workspace_id: str, process_id: str) -> tuple[Any, ...]:
    terminate = process_pb2.PROCESS_SIGNAL_TERMINATE
    named: dict[str, Any] = {"request_id": "r", "workspace_id": workspace_id}
    return (
        api.StartWorkspaceProcessRequest(**named, spec=process_pb2.ProcessSpec(command="true")),
        api.WriteWorkspaceStdinRequest(**named, process_id=process_id, data=b"x"),
        api.SignalWorkspaceProcessRequest(**named, process_id=process_id, signal=terminate),
    )


def absent(workspace_id: str) -> Problem:
    return Problem(
        grpc.StatusCode.NOT_FOUND,
        "WORKSPACE_NOT_FOUND",
        "There is no such workspace, or you may not see it.",
        {"workspace_id": workspace_id},
    )


async def share(served: ServedChats, chat_id: str) -> None:
    shares = [chats_api.Share(user_id=BOB_ID), chats_api.Share(group_id=EVES_GROUP)]
    request = chats_api.SetSharesRequest(
        request_id=served.ann.fresh(), chat_id=chat_id, shares=shares
    )
    await served.ann.ask(request)


async def test_the_owner_sees_and_steers_processes(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    started = (await start(served.ann, chat.id, "serve")).process
    context = workspace_pb2.WorkspaceContext(
        workspace_id=chat.id, profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE
    )
    assert (toolrunner.requests[-1].context, toolrunner.requests[-1].HasField("key")) == (
        context,
        False,
    )

    listed = await served.ann.ask(api.ListWorkspaceProcessesRequest(workspace_id=chat.id))
    assert listed == api.ListWorkspaceProcessesResponse(processes=[started])
    assert toolrunner.requests[-1].page_size == 50
    named = {"workspace_id": chat.id, "process_id": started.process_id}
    written = await served.ann.ask(
        api.WriteWorkspaceStdinRequest(request_id="w", data=b"hi", **named)
    )
    assert (written.process, toolrunner.last().written) == (started, b"hi")
    condition = process_pb2.WaitCondition(until=process_pb2.WAIT_UNTIL_OUTPUT, max_wait_ms=60_000)
    waited = await served.ann.ask(
        api.WaitWorkspaceOutputRequest(**named, condition=condition, since_cursor=4)
    )
    assert (waited.output.text, waited.output.next_cursor) == ("hi", 6)
    signal = process_pb2.PROCESS_SIGNAL_TERMINATE
    signalled = await served.ann.ask(
        api.SignalWorkspaceProcessRequest(request_id="s", signal=signal, **named)
    )
    assert signalled.process.exit.signal == "SIGTERM"
    assert toolrunner.last().signals == [signal]


async def test_a_terminal_has_a_usual_size_and_is_the_standard_input(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    await start(served.ann, chat.id, "serve")
    assert toolrunner.requests[-1].spec == process_pb2.ProcessSpec(
        command="serve", stdin_mode=process_pb2.STDIN_MODE_CLOSED
    )
    spec = process_pb2.ProcessSpec(command="top", terminal=process_pb2.TerminalSize(rows=30))
    await served.ann.ask(
        api.StartWorkspaceProcessRequest(request_id="t", workspace_id=chat.id, spec=spec)
    )
    assert toolrunner.requests[-1].spec == process_pb2.ProcessSpec(
        command="top",
        terminal=process_pb2.TerminalSize(rows=30, columns=80),
        stdin_mode=process_pb2.STDIN_MODE_TERMINAL,
    )


async def test_text_is_written_as_utf_8_and_nothing_is_refused(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    started = (await start(served.ann, chat.id, "serve")).process
    named = {"workspace_id": chat.id, "process_id": started.process_id}
    await served.ann.ask(api.WriteWorkspaceStdinRequest(request_id="w", text="é", **named))
    assert toolrunner.last().written == "é".encode()
    refused = await served.ann.refusal(api.WriteWorkspaceStdinRequest(request_id="v", **named))
    assert (refused.status, [each.field for each in refused.violations]) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        ["text"],
    )


async def test_a_wait_is_given_its_time_and_half_a_minute_more(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    started = (await start(served.ann, chat.id, "serve")).process
    condition = process_pb2.WaitCondition(max_wait_ms=300_000)
    request = api.WaitWorkspaceOutputRequest(
        workspace_id=chat.id, process_id=started.process_id, condition=condition
    )
    with acting_for(User(UserId(served.ann.id), served.ann.role)):
        await served.ann.workspaces.WaitWorkspaceOutput(request, timeout=330)
    assert 320 < toolrunner.allowed_s[-1] < 332

    condition.max_wait_ms = 300_001
    request.condition.CopyFrom(condition)
    refused = await served.ann.refusal(request)
    assert refused.violations[0].field == "condition.max_wait_ms"


async def test_a_process_that_stops_sends_those_who_wait_to_another(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    started = (await start(served.ann, chat.id, "serve")).process
    toolrunner.is_holding = True
    request = api.WaitWorkspaceOutputRequest(
        workspace_id=chat.id,
        process_id=started.process_id,
        condition=process_pb2.WaitCondition(max_wait_ms=20_000),
    )
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(served.ann.refusal(request))
        await toolrunner.asked.wait()
        served.stopping.set()
    assert (waiting.result().status, waiting.result().reason) == (
        grpc.StatusCode.UNAVAILABLE,
        "DRAINING",
    )


async def test_those_with_whom_a_chat_is_shared_read_and_change_nothing(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    toolrunner.files["a.txt"] = b"text"
    started = (await start(served.ann, chat.id, "serve")).process
    await share(served, chat.id)
    seen = len(toolrunner.requests)
    for person in (served.bob, served.eve):
        for request in reads(chat.id, started.process_id):
            await person.ask(request)
        assert (await download(person, workspace_id=chat.id, path="a.txt"))[1].chunk == b"text"
        for request in changes(chat.id, started.process_id):
            refused = await person.refusal(request)
            assert (refused.reason, refused.metadata) == ("CHAT_READ_ONLY", {"chat_id": chat.id})
    assert len(toolrunner.requests) == seen + 2 * 4


async def test_to_strangers_a_workspace_looks_absent(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    started = (await start(served.ann, chat.id, "serve")).process
    seen = len(toolrunner.requests)
    for workspace_id in (chat.id, NOBODYS):
        for requests in (reads, changes):
            for request in requests(workspace_id, started.process_id):
                assert await served.bob.refusal(request) == absent(workspace_id)
        for request in (
            api.GetWorkspaceGitStatusRequest(workspace_id=workspace_id),
            api.GetWorkspaceDiffRequest(workspace_id=workspace_id),
            api.ListWorkspaceTurnFilesRequest(workspace_id=workspace_id, turn_id=1),
            api.ReadWorkspaceTurnFileRequest(workspace_id=workspace_id, turn_id=1, path="a.txt"),
        ):
            assert await served.bob.refusal(request) == absent(workspace_id)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await download(served.bob, workspace_id=workspace_id, path="a.txt")
        assert problem_of(refused.value) == absent(workspace_id)
    assert len(toolrunner.requests) == seen


async def test_whoever_is_locked_out_changes_nothing(served: ServedChats) -> None:
    chat = await served.ann.create()
    served.suspended.add(served.ann.id)
    for request in changes(chat.id, NOBODYS):
        assert (await served.ann.refusal(request)).reason == "FORBIDDEN"


async def test_a_repeated_request_starts_one_process_and_writes_once(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    toolrunner.lost["StartProcess"] = ALWAYS
    with pytest.raises(grpc.aio.AioRpcError) as lost:
        await start(served.ann, chat.id, "serve", request_id="once")
    assert problem_of(lost.value).reason == "UPSTREAM_UNAVAILABLE"
    toolrunner.lost.clear()
    first = await start(served.ann, chat.id, "serve", request_id="once")
    assert await start(served.ann, chat.id, "serve", request_id="once") == first
    assert (len(toolrunner.processes), sum(toolrunner.starts.values())) == (1, 1)
    for _ in range(2):
        await served.ann.ask(
            api.WriteWorkspaceStdinRequest(
                request_id="twice",
                workspace_id=chat.id,
                process_id=first.process.process_id,
                data=b"x",
            )
        )
    assert toolrunner.last().written == b"x"


async def test_the_same_request_id_of_two_people_or_chats_is_two_requests(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    anns = [await served.ann.create("one"), await served.ann.create("two")]
    bobs = await served.bob.create()
    started = [await start(served.ann, chat.id, "serve", request_id="same") for chat in anns]
    started.append(await start(served.bob, bobs.id, "serve", request_id="same"))
    assert len({each.process.process_id for each in started}) == 3
    assert len(toolrunner.starts) == 3


async def test_a_request_needs_an_id_to_change_something(served: ServedChats) -> None:
    chat = await served.ann.create()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await start(served.ann, chat.id, "true", request_id="")
    assert problem_of(refused.value).violations[0].field == "request_id"


async def test_directories_and_files_are_read_in_pieces(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    data = bytes(range(256)) * 2048
    toolrunner.files |= {"big.bin": data, "src/a.py": b"x"}
    listed = await served.ann.ask(
        api.ListWorkspaceDirectoryRequest(workspace_id=chat.id, page_size=9, include_ignored=True)
    )
    assert [entry.info.path for entry in listed.entries] == ["src", "big.bin"]
    asked = toolrunner.requests[-1]
    assert (asked.include_hidden, asked.include_ignored) == (True, True)

    pieces = await download(served.ann, workspace_id=chat.id, path="big.bin")
    assert pieces[0].head.info.size_bytes == len(data)
    assert b"".join(piece.chunk for piece in pieces) == data
    assert pieces[-1].closed.reason == workspace_pb2.STREAM_END_REASON_COMPLETE
    part = await download(
        served.ann, workspace_id=chat.id, path="big.bin", offset_bytes=250, length_bytes=10
    )
    assert b"".join(piece.chunk for piece in part) == data[250:260]


async def test_what_a_node_says_of_a_request_is_passed_on(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    refused = await served.ann.refusal(
        api.WaitWorkspaceOutputRequest(workspace_id=chat.id, process_id=str(uuid.UUID(int=5)))
    )
    assert (refused.status, refused.reason) == (grpc.StatusCode.NOT_FOUND, "PROCESS_NOT_FOUND")
    toolrunner.scripts["true"] = ("", 0)
    ended = (await start(served.ann, chat.id, "true")).process
    refused = await served.ann.refusal(changes(chat.id, ended.process_id)[2])
    assert (refused.status, refused.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "PROCESS_NOT_RUNNING",
    )
    with pytest.raises(grpc.aio.AioRpcError) as absent_file:
        await download(served.ann, workspace_id=chat.id, path="nothing")
    assert problem_of(absent_file.value).reason == "PATH_NOT_FOUND"


async def test_what_a_node_does_not_serve_yet_is_told_so(served: ServedChats) -> None:
    chat = await served.ann.create()
    for request in (
        api.GetWorkspaceGitStatusRequest(workspace_id=chat.id),
        api.GetWorkspaceDiffRequest(workspace_id=chat.id),
        api.ListWorkspaceTurnFilesRequest(workspace_id=chat.id, turn_id=1),
    ):
        refused = await served.ann.refusal(request)
        assert (refused.status, refused.reason, refused.message) == (
            grpc.StatusCode.UNIMPLEMENTED,
            "UNIMPLEMENTED",
            "The node of this workspace does not serve this yet.",
        )


async def test_a_node_that_is_away_can_be_asked_again(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    toolrunner.down["ListProcesses"] = toolrunner.down["ReadBytes"] = ALWAYS
    refused = await served.ann.refusal(api.ListWorkspaceProcessesRequest(workspace_id=chat.id))
    assert (refused.status, refused.reason, refused.retry_after_s) == (
        grpc.StatusCode.UNAVAILABLE,
        "UPSTREAM_UNAVAILABLE",
        1.0,
    )
    with pytest.raises(grpc.aio.AioRpcError) as cut:
        await download(served.ann, workspace_id=chat.id, path="a.txt")
    assert problem_of(cut.value).reason == "UPSTREAM_UNAVAILABLE"


async def test_without_any_node_that_is_what_is_said(pool: Pool, tmp_path: Path) -> None:
    async with served_chats(pool, tmp_path) as served:
        chat = await served.ann.create()
        refused = await served.ann.refusal(api.ListWorkspaceProcessesRequest(workspace_id=chat.id))
        assert (refused.status, refused.reason) == (
            grpc.StatusCode.UNAVAILABLE,
            "UPSTREAM_UNAVAILABLE",
        )
