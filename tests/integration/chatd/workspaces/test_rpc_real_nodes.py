"""Workspaces over gRPC on a real node: processes and repositories, for those who may."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.api.workspace.v1 import process_pb2, workspace_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.identity import Role as UserRole
from parley.identity import User, UserId
from parley.postgres import Pool
from parley.rpc import Channels, acting_for, problem_of
from support.chatd.chats.served_chats import ServedChats, served_chats
from support.chatd.workspaces.workspace_visits import start
from support.toolrunner.node import House, connected, node


@asynccontextmanager
async def on_a_real_node(
    pool: Pool, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ServedChats]:
    """Serve chats whose workspaces are on a toolrunner of their own."""
    house = House.build(tmp_path_factory.mktemp("t"))
    async with (
        asyncio.timeout(30),
        node(house),
        connected(house) as client,
        served_chats(
            pool, tmp_path, toolrunners=Channels((house.address,), lambda _: client.channel)
        ) as served,
    ):
        yield served


async def test_repositories_of_a_real_node_are_read_by_those_who_may(
    pool: Pool,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with on_a_real_node(pool, tmp_path, tmp_path_factory) as served:
        ann, chat = served.ann, await served.ann.create()
        git = "git -c user.name=a -c user.email=a@b"
        made = f"git init -qb main; echo 1 > a; git add a; {git} commit -qm x; echo 2 > a"
        started = await start(ann, chat.id, made)
        condition = process_pb2.WaitCondition(until=process_pb2.WAIT_UNTIL_EXIT, max_wait_ms=10_000)
        await ann.ask(
            api.WaitWorkspaceOutputRequest(
                workspace_id=chat.id, process_id=started.process.process_id, condition=condition
            )
        )
        asked = api.GetWorkspaceGitStatusRequest(workspace_id=chat.id)
        (repository,) = (await ann.ask(asked)).repositories
        assert (repository.branch, [file.path for file in repository.files]) == ("main", ["a"])
        diff = await ann.ask(api.GetWorkspaceDiffRequest(workspace_id=chat.id))
        assert diff.patch.endswith("-1\n+2\n")
        named: dict[str, Any] = {"request_id": "once", "workspace_id": chat.id}
        keeping = api.CreateWorkspaceCheckpointRequest(**named, label="one")
        kept = (await ann.ask(keeping)).checkpoint
        assert (await ann.ask(keeping)).checkpoint == kept
        await start(ann, chat.id, "git checkout -q a; touch done")
        restoring = api.RestoreWorkspaceCheckpointRequest(
            request_id="back", workspace_id=chat.id, ref=kept.ref
        )
        previous = (await ann.ask(restoring)).previous
        listing = api.ListWorkspaceCheckpointsRequest(workspace_id=chat.id)
        listed = {each.ref for each in (await ann.ask(listing)).checkpoints}
        assert listed == {kept.ref, previous.ref}
        changed = api.ListWorkspaceTurnFilesRequest(workspace_id=chat.id, turn_id=1)
        reading = api.ReadWorkspaceTurnFileRequest(workspace_id=chat.id, turn_id=1, path="a")
        assert [*(await ann.ask(changed)).files] == []
        assert (await ann.refusal(reading)).reason == "CHECKPOINT_NOT_FOUND"
        for forbidden in (asked, keeping, restoring, listing, changed, reading):
            refused = await served.eve.refusal(forbidden)
            assert refused.reason == "WORKSPACE_NOT_FOUND"


async def test_repositories_of_a_real_node_are_followed_until_this_process_stops(
    pool: Pool,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with on_a_real_node(pool, tmp_path, tmp_path_factory) as served:
        chat = await served.ann.create()
        await start(served.ann, chat.id, "mkdir r && cd r && git init -qb main")
        with acting_for(User(UserId(served.ann.id), served.ann.role)):
            watch = served.ann.workspaces.WatchWorkspaceGit(
                api.WatchWorkspaceGitRequest(workspace_id=chat.id)
            )
        first = await watch.read()
        assert first.WhichOneof("kind") == "snapshot"
        await start(served.ann, chat.id, "sleep 0.3; echo 1 > r/a")
        while (seen := await watch.read()).changed.repository != "r" or not seen.changed.files:
            pass
        assert [file.path for file in seen.changed.files] == ["a"]
        await start(served.ann, chat.id, "rm -rf r")
        while (seen := await watch.read()).WhichOneof("kind") != "removed":
            pass
        assert seen.removed == "r"
        with acting_for(User(UserId(served.eve.id), served.eve.role)):
            forbidden = served.eve.workspaces.WatchWorkspaceGit(
                api.WatchWorkspaceGitRequest(workspace_id=chat.id)
            )
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await forbidden.read()
        assert problem_of(refused.value).reason == "WORKSPACE_NOT_FOUND"
        served.stopping.set()
        last = await watch.read()
        assert last.closed.reason == workspace_pb2.STREAM_END_REASON_GOING_AWAY


async def test_a_real_node_starts_waits_and_ends_for_people(
    pool: Pool,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    house = House.build(tmp_path_factory.mktemp("t"))
    async with (
        asyncio.timeout(20),
        node(house),
        connected(house) as client,
        served_chats(
            pool, tmp_path, toolrunners=Channels((house.address,), lambda _: client.channel)
        ) as served,
    ):
        ann, chat = served.ann, await served.ann.create()
        first = await start(ann, chat.id, "echo $$; exec sleep 60", request_id="once")
        named = {"workspace_id": chat.id, "process_id": first.process.process_id}
        again = await start(ann, chat.id, "echo $$; exec sleep 60", request_id="once")
        assert again.process.pid == first.process.pid
        with pytest.raises(grpc.aio.AioRpcError) as reused:
            await start(ann, chat.id, "echo other", request_id="once")
        problem = problem_of(reused.value)
        assert (problem.reason, problem.metadata) == (
            "REQUEST_ID_REUSED",
            {"request_id": "once"},
        )
        condition = process_pb2.WaitCondition(
            until=process_pb2.WAIT_UNTIL_OUTPUT, max_wait_ms=10_000
        )
        waited = await ann.ask(api.WaitWorkspaceOutputRequest(**named, condition=condition))
        assert waited.output.text == f"{first.process.pid}\n"
        kill = process_pb2.PROCESS_SIGNAL_KILL
        await ann.ask(api.SignalWorkspaceProcessRequest(request_id="k", signal=kill, **named))
        condition.until = process_pb2.WAIT_UNTIL_EXIT
        ended = await ann.ask(api.WaitWorkspaceOutputRequest(**named, condition=condition))
        assert (ended.process.exit.signal, ended.reason) == (
            "SIGKILL",
            process_pb2.WAIT_REASON_EXITED,
        )
        listed = await ann.ask(api.ListWorkspaceProcessesRequest(workspace_id=chat.id))
        assert [each.process_id for each in listed.processes] == [first.process.process_id]


async def upload(
    person: Any, chat_id: str, path: str, data: bytes, key: str, **more: Any
) -> api.UploadWorkspaceFileResponse:
    head = api.UploadWorkspaceFileHead(
        request_id=key, chat_id=chat_id, path=path, size_bytes=len(data), **more
    )
    pieces = [
        api.UploadWorkspaceFileRequest(head=head),
        *(api.UploadWorkspaceFileRequest(chunk=data[at : at + 4]) for at in range(0, len(data), 4)),
    ]
    with acting_for(User(UserId(person.id), UserRole.MEMBER)):
        answer: api.UploadWorkspaceFileResponse = await person.workspaces.UploadWorkspaceFile(
            iter(pieces)
        )
    return answer


async def test_files_of_a_real_node_are_written_found_and_searched_by_people(
    pool: Pool,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with on_a_real_node(pool, tmp_path, tmp_path_factory) as served:
        ann, chat = served.ann, await served.ann.create()
        text = b"one whale\ntwo whales\nthree\n"
        written = (await upload(ann, chat.id, "src/a.txt", text, "k1")).change
        assert (written.path, written.size_bytes) == ("src/a.txt", len(text))
        assert written.etag == hashlib.sha256(text).hexdigest()
        # A repeated request writes nothing.
        assert (await upload(ann, chat.id, "src/a.txt", text, "k1")).change == written

        asked = api.GetWorkspacePathRequest(workspace_id=chat.id, path="src/a.txt")
        known = await ann.ask(asked)
        assert (known.exists, known.etag, known.info.size_bytes) == (True, written.etag, len(text))
        gone = await ann.ask(api.GetWorkspacePathRequest(workspace_id=chat.id, path="src/b.txt"))
        assert (gone.exists, list(gone.suggestions)) == (False, ["src/a.txt"])

        finding = api.FindWorkspaceFilesRequest(workspace_id=chat.id, query="atxt")
        assert [each.info.path for each in (await ann.ask(finding)).files] == ["src/a.txt"]
        searching = api.SearchWorkspaceFilesRequest(
            workspace_id=chat.id, pattern="whale", glob="*.txt", path="src", limit=1
        )
        found = await ann.ask(searching)
        assert [(each.path, each.lines[0].line) for each in found.files] == [("src/a.txt", 1)]
        assert found.truncated

        newer = await upload(ann, chat.id, "src/a.txt", b"new", "k2", if_etag=written.etag)
        assert newer.change.size_bytes == 3
        for key, more in (("k3", {"if_etag": written.etag}), ("k4", {"create_only": True})):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await upload(ann, chat.id, "src/a.txt", b"lost", key, **more)
            assert problem_of(refused.value).reason in {"FILE_CHANGED", "PATH_EXISTS"}
        assert (await ann.ask(asked)).etag == newer.change.etag

        for forbidden in (asked, finding, searching):
            refusal = await served.eve.refusal(forbidden)
            assert refusal.reason == "WORKSPACE_NOT_FOUND"
        with pytest.raises(grpc.aio.AioRpcError) as other:
            await upload(served.eve, chat.id, "src/a.txt", b"x", "k5")
        assert problem_of(other.value).reason == "WORKSPACE_NOT_FOUND"
