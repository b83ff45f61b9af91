"""Workspaces over gRPC on a real node: processes and repositories, for those who may."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.api.workspace.v1 import process_pb2, workspace_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
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
        for forbidden in (asked, keeping, restoring, listing):
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
