"""Repositories in a sandbox: the same answers as without one."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from parley.api.workspace.v1 import git_service_pb2 as api
from support.toolrunner.node import Client, House, connected, node
from support.toolrunner.sandboxes import offered


@pytest.fixture(params=offered(), ids=lambda level: level.word)
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    house = replace(House.build(tmp_path), sandbox_level=request.param.word)
    async with node(house), connected(house) as client:
        yield client


async def test_repositories_are_read_kept_restored_and_followed(client: Client) -> None:
    git = "git -c user.name=a -c user.email=a@b"
    made = f"git init -qb main; echo 1 > a; git add a; {git} commit -qm x; echo 2 > a; echo 3 > b"
    ran = await client.run(made)
    assert ran.process.exit.exit_code == 0, ran.output.text
    status = await client.git.GetStatus(api.GetStatusRequest(context=client.context), timeout=20)
    (repository,) = status.repositories
    assert [(file.path, file.added_lines) for file in repository.files] == [("a", 1), ("b", 1)], (
        repository
    )
    diff = await client.git.GetDiff(api.GetDiffRequest(context=client.context), timeout=20)
    assert "-1\n+2\n" in diff.patch
    kept = await client.git.CreateCheckpoint(
        api.CreateCheckpointRequest(context=client.context, request_id="k", label="one"), timeout=20
    )
    events = aiter(client.git.WatchGit(api.WatchGitRequest(context=client.context)))
    async with asyncio.timeout(20):
        assert (await anext(events)).HasField("snapshot")
        await client.run("echo 9 > c")
        assert len((await anext(events)).changed.files) == 3
    await client.run("rm a; echo 4 > b")
    await client.git.RestoreCheckpoint(
        api.RestoreCheckpointRequest(
            context=client.context, request_id="r", ref=kept.checkpoint.ref, remove_later_files=True
        ),
        timeout=20,
    )
    assert (await client.run("cat a b; ls")).output.text == "2\n3\na\nb\n"
    assert (
        await client.run(f"echo 5 > a; {git} commit -qam y && git status --short")
    ).output.text == "?? b\n"
