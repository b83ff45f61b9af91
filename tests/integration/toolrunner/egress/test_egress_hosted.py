"""A hosted workspace that goes out by its policy, at each level that keeps it from going past."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.api.workspace.v1 import host_service_pb2 as api
from parley.api.workspace.v1 import process_pb2, sandbox_pb2
from support.toolrunner.hosted_workspaces import Placer
from support.toolrunner.node import connected, node, toolrunner
from support.toolrunner.proxied_workspaces import (
    HOST,
    check_level,
    house_of,
    proxied,
    running_origin,
)


@pytest.fixture
async def origin() -> AsyncIterator[int]:
    async with running_origin() as port:
        yield port


@pytest.mark.parametrize("level", ["ns", "landlock"])
async def test_a_hosted_workspace_reaches_what_its_policy_allows_and_nothing_past_the_proxy(
    tmp_path_factory: pytest.TempPathFactory, origin: int, level: str
) -> None:
    house = house_of(tmp_path_factory.mktemp("h"), origin, level)
    async with node(house), connected(house) as client:
        placer = Placer(client, Path(house.data))
        spec = proxied(origin, f"curl -sS -m 20 http://{HOST}:{origin}/ > from-setup || true")
        workspace_id = await placer.ready(spec)
        placer.enter(workspace_id)
        await check_level(client, level)
        setup = await client.run("cat from-setup")
        allowed = await client.run(f"curl -sS -m 20 http://{HOST}:{origin}/")
        refused = await client.run("curl -sS -m 20 http://elsewhere.example/")
        past = await client.run(f"curl -sS -m 20 --noproxy '*' http://{HOST}:{origin}/ 2>&1")
        await placer.stub.UpdateWorkspacePolicy(
            api.UpdateWorkspacePolicyRequest(
                request_id="closed",
                workspace_id=workspace_id,
                epoch=1,
                network=sandbox_pb2.NetworkPolicy(access=sandbox_pb2.NETWORK_ACCESS_PROXY),
            )
        )
        closed = await client.run(f"curl -sS -m 20 http://{HOST}:{origin}/")

    assert (setup.output.text, allowed.output.text) == ("hello\n", "hello\n")
    assert "elsewhere.example:80 is not allowed to this workspace" in refused.output.text
    assert "hello" not in past.output.text
    assert f"{HOST}:{origin} is not allowed to this workspace" in closed.output.text


async def test_a_process_that_outlives_its_node_keeps_its_way_out(
    tmp_path_factory: pytest.TempPathFactory, origin: int
) -> None:
    house = house_of(tmp_path_factory.mktemp("h"), origin, "ns")
    command = f"while ! [ -e go ]; do sleep 0.05; done; curl -sS -m 20 http://{HOST}:{origin}/"
    async with toolrunner(house) as killed:
        async with connected(house) as before:
            placer = Placer(before, Path(house.data))
            workspace_id = await placer.ready(proxied(origin))
            placer.enter(workspace_id)
            await check_level(before, "ns")
            started = await before.start(command)
        killed.kill()
        await killed.wait()
    async with toolrunner(house), connected(house) as client:
        client.stands_for(before)
        (placer.root(workspace_id) / "go").touch()
        ended = await client.wait(started.process.process_id, max_wait_ms=90_000)

    # Of a process that still runs the exit code would be 0, and the output empty.
    assert ended.reason == process_pb2.WAIT_REASON_EXITED
    assert (ended.process.exit.exit_code, ended.output.text) == (0, "hello\n")
