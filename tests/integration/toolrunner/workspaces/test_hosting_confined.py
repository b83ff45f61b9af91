"""Workspaces of every kind where commands are confined, at each level that this machine offers."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from parley.api.workspace.v1 import host_service_pb2 as api
from parley.api.workspace.v1 import sandbox_pb2
from support.toolrunner.hosted_workspaces import Placer, Repository, fork, git, scratch
from support.toolrunner.node import House, connected, node
from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level


@pytest.fixture(params=offered(), ids=lambda level: level.word)
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> House:
    level: Level = request.param
    directory = tmp_path_factory.mktemp("c")
    for path in (directory, *directory.parents[:2]):
        path.chmod(0o711)
    house = replace(House.build(directory), sandbox_level=level.word)
    house.settings["TOOLRUNNER_GIT_PROTOCOLS"] = "file"
    return house


@pytest.fixture
async def placer(house: House) -> AsyncIterator[Placer]:
    async with node(house), connected(house) as client:
        yield Placer(client, house.data)


async def test_workspaces_of_all_kinds_work_where_commands_are_confined(
    placer: Placer, tmp_path: Path
) -> None:
    repository = Repository.made(tmp_path / "r")
    commit = repository.commit(a_txt="one\n")
    for spec in (git(repository.url, branch="w"), git(repository.url, worktree=True)):
        spec.setup_script = "cat a.txt; echo set up > made"
        workspace_id = placer.new_id()
        prepared = await placer.prepare(workspace_id, spec)
        assert (prepared.kind, prepared.lines[-1]) == ("prepared", "one")
        assert prepared.end.prepared.git_commit == commit
        placer.enter(workspace_id)
        told = await placer.client.run("git log --format=%s; cat made")
        assert told.output.text == "a change\nset up\n"
    parent_id = await placer.ready(scratch("echo mine > own", a="one"))
    fork_id = await placer.ready(fork(parent_id))
    placer.enter(fork_id)
    placer.client.context.profile = sandbox_pb2.SANDBOX_PROFILE_FULL
    await placer.client.run("echo changed > a; mkdir d; echo new > d/new")
    report = await placer.merge(fork_id, parent_id)
    assert (report.applied, list(report.merged_paths)) == (True, ["a", "d", "d/new"])
    placer.enter(parent_id)
    told = await placer.client.run("cat a d/new; echo still mine >> d/new && cat own")
    assert told.output.text == "changed\nnew\nmine\n"
    owners = {os.stat(placer.root(each)).st_uid for each in (fork_id, parent_id)}
    layers = (await placer.stub.GetHost(api.GetHostRequest())).node.sandbox.layers
    assert len(owners) == (2 if sandbox_pb2.SANDBOX_LAYER_UID in layers else 1)
    for each in (fork_id, parent_id):
        await placer.remove(each)
        assert not placer.root(each).parent.exists()


async def test_a_policy_that_is_narrowed_holds_for_the_next_process(placer: Placer) -> None:
    spec = scratch()
    spec.network.access = sandbox_pb2.NETWORK_ACCESS_OPEN
    workspace_id = await placer.ready(spec)
    placer.enter(workspace_id)
    before = (await placer.client.run("true")).process.sandbox.network
    closed = sandbox_pb2.NetworkPolicy(access=sandbox_pb2.NETWORK_ACCESS_NONE)
    request = api.UpdateWorkspacePolicyRequest(
        request_id=placer.new_id(), workspace_id=workspace_id, epoch=1, network=closed
    )
    await placer.stub.UpdateWorkspacePolicy(request)
    after = (await placer.client.run("true")).process.sandbox.network
    assert (before, after) == (
        sandbox_pb2.NETWORK_ACCESS_OPEN,
        sandbox_pb2.NETWORK_ACCESS_NONE,
    )


async def test_the_limits_of_a_template_hold_for_every_process_and_can_be_changed(
    placer: Placer,
) -> None:
    spec = scratch("ulimit -f > bounds; ulimit -d >> bounds")
    spec.limits.memory_bytes, spec.limits.disk_bytes = 512 << 20, 64 << 20
    spec.limits.pids, spec.limits.output_bytes = 200, 4096
    workspace_id = await placer.ready(spec)
    placer.enter(workspace_id)
    # In blocks of 512 bytes and of 1 KiB, as sh tells them; the setup script is a process too.
    bounds = f"{(64 << 20) // 512}\n{512 << 10}\n"
    told = await placer.client.run("cat bounds; ulimit -f; ulimit -d")
    assert told.output.text == bounds * 2
    await placer.client.run("head -c 4000000 /dev/zero | tr '\\0' x")
    assert sum(each.stat().st_size for each in placer.logs(workspace_id).iterdir()) < 200_000
    narrower = sandbox_pb2.ResourceLimits(memory_bytes=256 << 20)
    request = api.UpdateWorkspacePolicyRequest(
        request_id=placer.new_id(), workspace_id=workspace_id, epoch=1, limits=narrower
    )
    await placer.stub.UpdateWorkspacePolicy(request)
    told = await placer.client.run("ulimit -f; ulimit -d")
    assert told.output.text.split("\n")[1] == str(256 << 10)
