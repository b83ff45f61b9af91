"""What is small where it is kept and large where the node makes it: it stops at the quota."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import workspace_pb2
from support.toolrunner.hosted_workspaces import Placer, Prepared, Repository, fork, git
from support.toolrunner.node import House, connected, node, reason_of

MIB = 1024**2
DISK_MIB = 16
INODES = 500
#: Each level of the bomb has as many times the files of the one below it.
WIDTH, DEPTH = 10, 6
MANY_NAMES = f"head -c 1M /dev/zero > f; for i in $(seq {2 * DISK_MIB}); do ln f f$i; done"


@pytest.fixture
def house(house: House) -> House:
    house.settings["TOOLRUNNER_WORKSPACE_DISK_BYTES"] = str(DISK_MIB * MIB)
    house.settings["TOOLRUNNER_WORKSPACE_INODES"] = str(INODES)
    house.settings["TOOLRUNNER_GIT_PROTOCOLS"] = "file"
    return house


@pytest.fixture
async def placer(house: House) -> AsyncIterator[Placer]:
    async with node(house), connected(house) as client:
        yield Placer(client, house.data)


def left_behind(placer: Placer, workspace_id: str) -> list[Path]:
    """Return what a workspace without files has on disk, and what lies in the trash."""
    directory = placer.root(workspace_id).parent
    made = [each for each in directory.rglob("*") if not each.is_dir()]
    return [*made, *(placer.house_data / "trash").iterdir()]


def assert_refused(prepared: Prepared, dimension: str) -> None:
    failure = prepared.end.failed
    assert prepared.kind == "failed", prepared
    assert failure.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_NO_SPACE
    assert dimension in failure.message


async def test_e22_a_file_with_many_names_is_not_copied_for_each_beyond_the_quota(
    placer: Placer,
) -> None:
    parent = await placer.ready()
    placer.enter(parent)
    await placer.client.run(MANY_NAMES)
    copy = placer.new_id()
    assert_refused(await placer.prepare(copy, fork(parent)), "disk_bytes")
    assert left_behind(placer, copy) == []
    placer.enter(parent)
    await placer.client.run("rm f?*")
    assert (await placer.prepare(placer.new_id(), fork(parent))).kind == "prepared"


async def test_e22_nor_is_it_brought_home_for_each(placer: Placer) -> None:
    parent = await placer.ready()
    copy = await placer.ready(fork(parent))
    placer.enter(copy)
    await placer.client.run(MANY_NAMES)
    before = sorted(placer.root(parent).rglob("*"))
    refused = await reason_of(placer.merge(copy, parent))
    assert refused == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXHAUSTED")
    assert sorted(placer.root(parent).rglob("*")) == before


async def test_e22_a_repository_that_is_checked_out_as_a_million_files_is_given_up(
    placer: Placer, tmp_path: Path
) -> None:
    repository = Repository.made(tmp_path / "bomb")
    tree = made(repository, "hash-object", "-w", "--stdin", given="x")
    kind, mode = "blob", "100644"
    for _ in range(DEPTH):
        lines = "".join(f"{mode} {kind} {tree}\t{number}\n" for number in range(WIDTH))
        tree, kind, mode = made(repository, "mktree", given=lines), "tree", "040000"
    commit = made(repository, "commit-tree", "-m", "bomb", tree)
    repository.git("update-ref", "refs/heads/trunk", commit)
    workspace_id = placer.new_id()
    prepared = await placer.prepare(workspace_id, git(repository.url))
    assert_refused(prepared, "inodes")
    assert left_behind(placer, workspace_id) == []


def made(repository: Repository, *words: str, given: str = "") -> str:
    """Return the name of what git made of something."""
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ("git", *author, *words),
        cwd=repository.directory,
        input=given,
        text=True,
        capture_output=True,
        check=True,
    )
    return done.stdout.strip()
