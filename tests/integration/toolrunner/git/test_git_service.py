"""GitService of a real node: what is asked over gRPC, journaled and followed."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import git_pb2, sandbox_pb2
from parley.api.workspace.v1 import git_service_pb2 as api
from parley.rpc import problem_of
from support.toolrunner.files import Files
from support.toolrunner.git_repositories import Bench
from support.toolrunner.node import Client, House
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.git.command import Git
from toolrunner.fileworker.git.handlers import GitHandlers

ANSWER_S = 20
#: Of the specification: a touched file shows within 2 s; the rest is for a machine under load.
CHANGE_S = 10


@pytest.fixture
def bench(client: Client, house: House) -> Bench:
    """The client's workspace, with one repository in it."""
    files = Files.of(client, house)
    git = Git("", {}, files.root)
    bench = Bench(files.root, GitHandlers(Root.open_directory(str(files.root)), git))
    bench.init()
    bench.put("a.txt", "1\n2\n")
    bench.commit()
    return bench


async def status(client: Client, **fields: str) -> list[git_pb2.GitRepository]:
    request = api.GetStatusRequest(context=client.context, **fields)
    return list((await client.git.GetStatus(request, timeout=ANSWER_S)).repositories)


async def keep(client: Client, label: str, epoch: int = 0) -> api.CreateCheckpointResponse:
    request = api.CreateCheckpointRequest(
        context=client.context, request_id=f"keep-{label}", label=label
    )
    if epoch:
        request.key.CopyFrom(await client.key(request.request_id, epoch))
    return await client.git.CreateCheckpoint(request, timeout=ANSWER_S)


async def reason(call: "grpc.aio.UnaryUnaryCall") -> str:  # type: ignore[type-arg]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return problem_of(refused.value).reason


async def test_status_and_difference_are_read(client: Client, bench: Bench) -> None:
    commit = bench.git("rev-parse", "HEAD").strip()
    bench.put("a.txt", "1\n3\n")
    bench.put("new.txt", "1\n")

    (repository,) = await status(client)

    assert repository.scanned_at.seconds > 0
    repository.ClearField("scanned_at")
    assert repository == git_pb2.GitRepository(
        branch="main",
        commit=commit,
        added_lines=2,
        deleted_lines=1,
        files=[
            git_pb2.GitFile(
                path="a.txt",
                state=git_pb2.GIT_FILE_STATE_MODIFIED,
                added_lines=1,
                deleted_lines=1,
            ),
            git_pb2.GitFile(path="new.txt", state=git_pb2.GIT_FILE_STATE_UNTRACKED, added_lines=1),
        ],
    )
    request = api.GetDiffRequest(context=client.context, paths=["a.txt"], context_lines=0)
    diff = await client.git.GetDiff(request, timeout=ANSWER_S)
    assert diff.patch.endswith("+++ b/a.txt\n@@ -2 +2 @@\n-2\n+3\n")
    assert (diff.base_commit, diff.truncated) == (commit, False)


async def test_what_cannot_be_is_refused_by_name(client: Client, bench: Bench) -> None:
    context = client.context
    bench.put("plain/x", "1\n")
    (bench.root / ".git").rename(bench.root / "plain/.git")
    get = client.git.GetDiff
    assert await reason(get(api.GetDiffRequest(context=context))) == "NOT_A_REPOSITORY"
    for wrong in (
        api.GetDiffRequest(context=context, repository="plain", base="--output=x"),
        api.GetDiffRequest(context=context, repository="plain", base="no such\nthing"),
        api.GetDiffRequest(context=context, repository="plain", target="nothing"),
        api.GetDiffRequest(context=context, repository="plain", context_lines=101),
        api.GetDiffRequest(context=context, repository="plain", max_bytes=4 * 1024 * 1024),
    ):
        assert await reason(get(wrong)) == "INVALID_REQUEST"
    for label in ("", "a/b", "..", "x.lock", "x" * 101, "ü"):
        create = api.CreateCheckpointRequest(context=context, request_id="r", label=label)
        assert await reason(client.git.CreateCheckpoint(create)) == "INVALID_REQUEST"
    restore = api.RestoreCheckpointRequest(
        context=context, request_id="r", repository="plain", ref="refs/heads/main"
    )
    assert await reason(client.git.RestoreCheckpoint(restore)) == "CHECKPOINT_NOT_FOUND"


async def test_a_checkpoint_is_made_and_restored_once(client: Client, bench: Bench) -> None:
    bench.put("new.txt", "new\n")
    kept = await keep(client, "turn-1", epoch=2)
    assert kept.checkpoint.ref == f"refs/agent/{client.chat_id}/turn-1"
    assert [file.path for file in kept.files] == ["new.txt"]
    assert await keep(client, "turn-1", epoch=2) == kept
    bench.put("a.txt", "lost\n")
    (bench.root / "new.txt").unlink()
    restore = api.RestoreCheckpointRequest(
        context=client.context,
        request_id="restore",
        key=await client.key("restore", 2),
        ref=kept.checkpoint.ref,
    )

    restored = await client.git.RestoreCheckpoint(restore, timeout=ANSWER_S)

    assert (bench.root / "a.txt").read_text() == "1\n2\n"
    assert (bench.root / "new.txt").read_text() == "new\n"
    assert [file.path for file in restored.files] == ["a.txt", "new.txt"]
    bench.put("a.txt", "after\n")
    assert await client.git.RestoreCheckpoint(restore, timeout=ANSWER_S) == restored
    assert (bench.root / "a.txt").read_text() == "after\n"
    listed = await client.git.ListCheckpoints(
        api.ListCheckpointsRequest(context=client.context), timeout=ANSWER_S
    )
    assert {each.ref for each in listed.checkpoints} == {
        kept.checkpoint.ref,
        restored.previous.ref,
    }


async def test_a_stale_owner_keeps_and_restores_nothing(client: Client, bench: Bench) -> None:
    kept = await keep(client, "one", epoch=5)
    bench.put("a.txt", "later\n")
    restore = api.RestoreCheckpointRequest(
        context=client.context,
        request_id="late",
        key=await client.key("late", 4),
        ref=kept.checkpoint.ref,
    )

    assert await reason(client.git.RestoreCheckpoint(restore)) == "STALE_OWNER"
    assert (bench.root / "a.txt").read_text() == "later\n"


async def test_a_restore_whose_program_is_killed_is_finished_by_the_next(
    client: Client, bench: Bench
) -> None:
    names = [f"f{number}" for number in range(200)]
    for name in names:
        bench.put(name, "1\n")
    kept = await keep(client, "one")
    for name in names:
        bench.put(name, "2\n")
        bench.put(f"later-{name}", "1\n")
    restore = api.RestoreCheckpointRequest(
        context=client.context,
        request_id="restore",
        ref=kept.checkpoint.ref,
        remove_later_files=True,
    )
    refs = bench.root / ".git/refs/agent" / client.chat_id
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        restoring = tasks.create_task(_restored(client, restore))
        while not list(refs.glob("before-*")):
            await asyncio.to_thread(lambda: None)
        for pid in file_workers_of(bench.root):
            os.kill(pid, signal.SIGKILL)

    restored = restoring.result()
    assert {name: (bench.root / name).read_text() for name in names} == dict.fromkeys(names, "1\n")
    assert not list(bench.root.glob("later-*"))
    restore.request_id, restore.ref = "back", restored.previous.ref
    await _restored(client, restore)
    assert {(bench.root / name).read_text() for name in names} == {"2\n"}
    assert len(list(bench.root.glob("later-*"))) == len(names)


async def test_who_may_only_read_keeps_nothing(client: Client, bench: Bench) -> None:
    client.context.profile = sandbox_pb2.SANDBOX_PROFILE_READ_ONLY

    (repository,) = await status(client)
    assert repository.branch == "main"
    create = api.CreateCheckpointRequest(context=client.context, request_id="r", label="x")
    assert await reason(client.git.CreateCheckpoint(create)) == "READ_ONLY"


async def test_a_change_is_told_within_seconds_and_a_commit_clears_it(
    client: Client, bench: Bench
) -> None:
    events = aiter(client.git.WatchGit(api.WatchGitRequest(context=client.context)))
    (first,) = (await _next(events)).snapshot.repositories
    assert (first.branch, list(first.files)) == ("main", [])

    bench.put("a.txt", "1\nchanged\n")
    changed = (await _next(events)).changed
    assert [file.path for file in changed.files] == ["a.txt"]

    bench.commit("done")
    while (event := await _next(events)).changed.files:
        pass
    assert event.changed.commit == bench.git("rev-parse", "HEAD").strip()

    bench.init("inner")
    while (event := await _next(events)).changed.repository != "inner":
        pass
    shutil.rmtree(bench.root / "inner")
    while (event := await _next(events)).removed.repository != "inner":
        pass


async def test_listeners_share_one_look_and_all_hear(client: Client, bench: Bench) -> None:
    watch = api.WatchGitRequest(context=client.context)
    streams = [aiter(client.git.WatchGit(watch)) for _ in range(3)]
    for events in streams:
        assert (await _next(events)).HasField("snapshot")

    bench.put("b.txt", "1\n")

    for events in streams:
        assert [file.path for file in (await _next(events)).changed.files] == ["b.txt"]


async def test_a_program_that_is_killed_is_followed_by_another(
    client: Client, bench: Bench
) -> None:
    events = aiter(client.git.WatchGit(api.WatchGitRequest(context=client.context)))
    assert (await _next(events)).HasField("snapshot")

    for pid in file_workers_of(bench.root):
        os.kill(pid, signal.SIGKILL)

    assert (await _next(events)).HasField("snapshot")
    bench.put("b.txt", "1\n")
    assert [file.path for file in (await _next(events)).changed.files] == ["b.txt"]


async def _restored(
    client: Client, restore: api.RestoreCheckpointRequest
) -> api.RestoreCheckpointResponse:
    return await client.git.RestoreCheckpoint(restore, timeout=60)


def file_workers_of(root: Path) -> list[int]:
    """Return the programs that work on the files of a workspace."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        if b"toolrunner.fileworker" in words and os.fsencode(root) in words:
            found.append(int(directory.name))
    return found


async def _next(events: AsyncIterator[api.WatchGitResponse]) -> api.WatchGitResponse:
    async with asyncio.timeout(CHANGE_S):
        return await anext(events)
