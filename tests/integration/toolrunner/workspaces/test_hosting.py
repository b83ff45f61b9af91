"""Workspaces of every kind on a real node: made, used, stopped, started again and removed."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import host_service_pb2 as api
from parley.api.workspace.v1 import sandbox_pb2, workspace_pb2
from support.host.conditions import until
from support.toolrunner.hosted_workspaces import Placer, Repository, fork, git, local, scratch
from support.toolrunner.node import House, connected, node, reason_of, running

WITHIN_S = 30.0


@pytest.fixture
def offered(tmp_path: Path) -> Path:
    directory = tmp_path / "offered"
    (directory / "sub").mkdir(parents=True)
    (directory / "sub" / "file").write_text("as it was")
    return directory


@pytest.fixture
def house(tmp_path_factory: pytest.TempPathFactory, offered: Path) -> House:
    house = House.build(tmp_path_factory.mktemp("h"))
    house.settings["TOOLRUNNER_GIT_PROTOCOLS"] = "file"
    house.settings["TOOLRUNNER_LOCAL_DIRECTORIES"] = f"it={offered},kept={offered};overlay"
    house.settings["TOOLRUNNER_WORKSPACES_MAX"] = "6"
    return house


@pytest.fixture
async def placer(house: House) -> AsyncIterator[Placer]:
    async with node(house), connected(house) as client:
        yield Placer(client, house.data)


async def test_a_scratch_workspace_begins_with_its_skeleton_and_runs_commands(
    placer: Placer,
) -> None:
    workspace_id = await placer.ready(scratch(src__main_py="print('hello')\n"))
    placer.enter(workspace_id)
    waited = await placer.client.run("python3 src/main.py")
    assert waited.output.text == "hello\n"


async def test_a_setup_script_prepares_a_workspace_and_its_lines_are_kept(placer: Placer) -> None:
    workspace_id, request_id = placer.new_id(), placer.new_id()
    spec = scratch("echo one; echo two >&2; touch made")
    first = await placer.prepare(workspace_id, spec, request_id=request_id)
    assert (first.kind, first.lines, first.sequences) == ("prepared", ("one", "two"), (1, 2))
    assert (placer.root(workspace_id) / "made").exists()
    again = await placer.prepare(workspace_id, spec, request_id=request_id, after=1)
    assert (again.lines, again.end.prepared) == (("two",), first.end.prepared)


async def test_a_setup_script_that_fails_or_takes_too_long_fails_the_workspace(
    placer: Placer, marks: list[str]
) -> None:
    failed = await placer.prepare(placer.new_id(), scratch("echo so; exit 3"))
    assert failed.end.failed.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_SETUP
    assert (failed.lines, failed.end.failed.recreatable) == (("so",), False)
    marks.append("sleep\x008101")
    slow = scratch("sleep 8101")
    slow.setup_timeout_ms = 300
    late = await placer.prepare(placer.new_id(), slow)
    assert late.end.failed.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_SETUP


async def test_a_failed_workspace_is_prepared_again_when_it_is_asked_for_anew(
    placer: Placer,
) -> None:
    workspace_id = placer.new_id()
    spec = scratch("echo try; mkdir once || exit 0; exit 1")
    assert (await placer.prepare(workspace_id, spec)).kind == "failed"
    again = await placer.prepare(workspace_id, spec, epoch=2)
    assert (again.kind, again.lines.count("try")) == ("prepared", 2)


async def test_a_git_workspace_is_a_clone_on_a_branch_of_its_own(
    placer: Placer, tmp_path: Path
) -> None:
    repository = Repository.made(tmp_path / "r")
    commit = repository.commit(a_txt="one\n")
    workspace_id = placer.new_id()
    spec = git(repository.url, branch="agent/x")
    prepared = (await placer.prepare(workspace_id, spec)).end.prepared
    assert (prepared.git_branch, prepared.git_commit) == ("agent/x", commit)
    placer.enter(workspace_id)
    told = await placer.client.run("cat a.txt; git remote get-url origin; git status --short")
    assert told.output.text == f"one\n{repository.url}\n"


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("is_worktree", [False, True])
async def test_a_git_workspace_begins_at_the_branch_tag_or_commit_asked_for(
    placer: Placer, tmp_path: Path, depth: int, is_worktree: bool
) -> None:
    repository = Repository.made(tmp_path / "r")
    first = repository.commit(a_txt="one\n")
    repository.git("tag", "v1")
    repository.git("branch", "side")
    newest = repository.commit(a_txt="two\n")
    begun = {}
    for ref in ("", "trunk", "side", "v1", first):
        spec = git(repository.url, ref=ref, depth=depth, worktree=is_worktree)
        workspace_id = placer.new_id()
        end = (await placer.prepare(workspace_id, spec)).end
        begun[ref] = (end.prepared.git_branch, end.prepared.git_commit)
        await placer.remove(workspace_id)
    assert begun == {
        "": ("trunk", newest),
        "trunk": ("trunk", newest),
        "side": ("side", first),
        "v1": ("", first),
        first: ("", first),
    }


async def test_a_default_branch_that_looks_like_an_option_is_none(
    placer: Placer, tmp_path: Path
) -> None:
    (tmp_path / "private").write_text("of the node\n")
    repository = Repository.made(tmp_path / "r")
    commit = repository.commit(a_txt="one\n")
    name = f"refs/heads/--pathspec-from-file={tmp_path}/private"
    repository.git("update-ref", name, commit)
    repository.git("symbolic-ref", "HEAD", name)
    failed = await placer.prepare(placer.new_id(), git(repository.url))
    assert failed.kind == "failed"
    assert "for an option" in failed.end.failed.message
    assert "of the node" not in f"{failed.lines} {failed.end}"


async def test_a_mirror_is_fetched_before_each_use_and_shares_no_file(
    placer: Placer, house: House, tmp_path: Path
) -> None:
    repository = Repository.made(tmp_path / "r")
    repository.commit(a_txt="one\n")
    await placer.ready(git(repository.url))
    newest = repository.commit(a_txt="two\n")
    workspace_id = placer.new_id()
    prepared = (await placer.prepare(workspace_id, git(repository.url))).end.prepared
    assert prepared.git_commit == newest
    inside = {path.stat().st_ino for path in placer.root(workspace_id).rglob("*")}
    mirrored = {path.stat().st_ino for path in (house.data / "mirrors").rglob("*")}
    assert inside & mirrored == set()
    host = await placer.stub.GetHost(api.GetHostRequest())
    assert list(host.node.mirrors) == [repository.url]


async def test_workspaces_of_one_repository_that_are_made_at_once_are_all_made(
    placer: Placer, tmp_path: Path
) -> None:
    repository = Repository.made(tmp_path / "r")
    commit = repository.commit(a_txt="one\n")
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
        made = [
            tasks.create_task(placer.prepare(placer.new_id(), git(repository.url)))
            for _ in range(5)
        ]
    assert {each.result().end.prepared.git_commit for each in made} == {commit}


@pytest.mark.parametrize("fault", ["no-repository", "no-ref"])
async def test_a_source_that_is_not_there_fails_the_workspace_and_leaves_nothing(
    placer: Placer, tmp_path: Path, fault: str
) -> None:
    repository = Repository.made(tmp_path / "r")
    repository.commit(a_txt="one\n")
    absent = f"file://{tmp_path}/absent"
    spec = git(absent) if fault == "no-repository" else git(repository.url, ref="nowhere")
    workspace_id = placer.new_id()
    failed = (await placer.prepare(workspace_id, spec)).end.failed
    assert failed.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_SOURCE
    assert not placer.root(workspace_id).exists()


async def test_a_transport_that_is_not_allowed_is_not_used(placer: Placer, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    failed = await placer.prepare(placer.new_id(), git(f"ext::sh -c touch% {mark}"))
    assert failed.end.failed.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_SOURCE
    assert not mark.exists()


async def test_a_local_workspace_is_the_directory_itself(placer: Placer, offered: Path) -> None:
    workspace_id = placer.new_id()
    prepared = (await placer.prepare(workspace_id, local("it", overlay=False))).end.prepared
    assert prepared.root_path == str(offered)
    placer.enter(workspace_id)
    await placer.client.run("echo changed > sub/file")
    assert (offered / "sub" / "file").read_text() == "changed\n"
    await placer.remove(workspace_id)
    assert (offered / "sub" / "file").read_text() == "changed\n"


async def test_an_overlay_leaves_the_directory_alone_and_survives_a_stop(
    placer: Placer, offered: Path
) -> None:
    workspace_id = placer.new_id()
    prepared = await placer.prepare(workspace_id, local("kept", overlay=True))
    assert prepared.kind == "prepared"
    assert len(prepared.lines) == 1  # It says how the layer was made.
    placer.enter(workspace_id)
    await placer.client.run("echo changed > sub/file; rm -r sub/../sub/gone; echo new > new")
    await placer.stop(workspace_id)
    await placer.prepare(workspace_id, local("kept", overlay=True), epoch=2, must_exist=True)
    placer.enter(workspace_id, epoch=2)
    told = await placer.client.run("cat sub/file new")
    assert told.output.text == "changed\nnew\n"
    assert (offered / "sub" / "file").read_text() == "as it was"
    await placer.remove(workspace_id, epoch=2)
    assert [os.listdir(offered), os.listdir(offered / "sub")] == [["sub"], ["file"]]


@pytest.mark.parametrize(("name", "overlay"), [("absent", True), ("kept", False)])
async def test_a_directory_that_is_not_offered_like_this_is_refused(
    placer: Placer, name: str, overlay: bool
) -> None:
    failed = (await placer.prepare(placer.new_id(), local(name, overlay=overlay))).end.failed
    assert failed.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_SOURCE
    assert not failed.recreatable


async def test_a_fork_has_the_files_of_its_parent_and_shares_none(placer: Placer) -> None:
    parent_id = await placer.ready(scratch("ln -s a link; ln a hard; mkfifo pipe", a="one"))
    fork_id = placer.new_id()
    prepared = (await placer.prepare(fork_id, fork(parent_id))).end.prepared
    assert prepared.fork_mode == workspace_pb2.FORK_MODE_COPY
    root = placer.root(fork_id)
    assert sorted(path.name for path in root.iterdir()) == ["a", "hard", "link"]
    assert (root / "link").readlink() == Path("a")
    assert (root / "a").stat().st_nlink == 1
    (root / "a").write_text("two")
    assert (placer.root(parent_id) / "a").read_text() == "one"


@pytest.mark.parametrize(
    "mode", [workspace_pb2.FORK_MODE_WORKTREE, workspace_pb2.FORK_MODE_OVERLAY]
)
async def test_a_fork_that_would_share_what_it_changes_is_refused(
    placer: Placer, mode: int
) -> None:
    parent_id = await placer.ready()
    refused = await reason_of(placer.prepare(placer.new_id(), fork(parent_id, mode=mode)))
    assert refused == (grpc.StatusCode.FAILED_PRECONDITION, "FORK_NOT_POSSIBLE")


async def test_a_stop_ends_fifty_detached_processes_and_keeps_the_files(
    placer: Placer, marks: list[str]
) -> None:
    marks.append("sleep\x008102")
    workspace_id = await placer.ready(scratch(a="one"))
    placer.enter(workspace_id)
    daemons = "for i in $(seq 50); do (setsid env -i /bin/sleep 8102 >/dev/null 2>&1 &); done"
    await placer.client.run(f"{daemons}; echo done")
    await asyncio.to_thread(
        until, lambda: len(running("sleep\x008102")) == 50, "all of them", within_s=WITHIN_S
    )
    stopped = await placer.stop(workspace_id)
    assert running("sleep\x008102") == []
    assert stopped.ended_processes >= 50
    assert await placer.states() == {workspace_id: "stopped"}
    assert (placer.root(workspace_id) / "a").read_text() == "one"
    refused = await reason_of(placer.client.start("true"))
    assert refused == (grpc.StatusCode.FAILED_PRECONDITION, "WORKSPACE_NOT_READY")


async def test_a_stop_gives_a_preparation_up(placer: Placer, marks: list[str]) -> None:
    marks.append("sleep\x008103")
    workspace_id, request_id = placer.new_id(), placer.new_id()
    spec = scratch("echo begun; sleep 8103")
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
        preparing = tasks.create_task(placer.prepare(workspace_id, spec, request_id=request_id))
        await asyncio.to_thread(
            until, lambda: bool(running("sleep\x008103")), "the script", within_s=WITHIN_S
        )
        await placer.stop(workspace_id)
    closed = preparing.result().end.closed
    assert closed.reason == workspace_pb2.STREAM_END_REASON_WORKSPACE_STOPPED
    again = await placer.prepare(workspace_id, spec, request_id=request_id)
    assert again.kind == "failed"


async def test_an_older_placement_is_refused_everywhere(placer: Placer) -> None:
    workspace_id = placer.new_id()
    await placer.prepare(workspace_id, epoch=5)
    stale = (grpc.StatusCode.FAILED_PRECONDITION, "STALE_PLACEMENT")
    assert await reason_of(placer.prepare(workspace_id, epoch=4)) == stale
    assert await reason_of(placer.stop(workspace_id, epoch=4)) == stale
    assert await reason_of(placer.remove(workspace_id, epoch=4)) == stale
    for epoch in (0, 4, 6):
        placer.enter(workspace_id, epoch)
        assert await reason_of(placer.client.start("true")) == stale
    await placer.remove(workspace_id, epoch=6)
    assert await reason_of(placer.prepare(workspace_id, epoch=5)) == stale


async def test_a_workspace_that_is_not_here_is_told_from_one_that_nobody_placed(
    placer: Placer,
) -> None:
    placer.enter(placer.new_id(), epoch=1)
    absent = (grpc.StatusCode.NOT_FOUND, "WORKSPACE_NOT_FOUND")
    assert await reason_of(placer.client.start("true")) == absent
    placer.enter(placer.new_id(), epoch=0)
    assert (await placer.client.run("echo made")).output.text == "made\n"


async def test_a_repeated_request_is_answered_as_the_first_time(
    placer: Placer, marks: list[str]
) -> None:
    marks.append("sleep\x008104")
    workspace_id, stop_id, remove_id = placer.new_id(), placer.new_id(), placer.new_id()
    await placer.prepare(workspace_id)
    placer.enter(workspace_id)
    await placer.client.start("sleep 8104")
    first = await placer.stop(workspace_id, request_id=stop_id)
    assert first.ended_processes >= 1
    assert await placer.stop(workspace_id, request_id=stop_id) == first
    removed = await placer.remove(workspace_id, request_id=remove_id)
    assert removed.freed_bytes > 0
    assert await placer.remove(workspace_id, request_id=remove_id) == removed
    reused = await reason_of(placer.remove(placer.new_id(), request_id=remove_id))
    assert reused == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")


async def test_files_that_must_exist_and_do_not_fail_the_workspace(placer: Placer) -> None:
    failed = (await placer.prepare(placer.new_id(), must_exist=True)).end.failed
    assert failed.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_SOURCE
    assert failed.recreatable


async def test_more_confinement_than_there_is_fails_the_workspace(placer: Placer) -> None:
    spec = scratch()
    spec.sandbox_minimum = sandbox_pb2.SANDBOX_LEVEL_VM
    failed = (await placer.prepare(placer.new_id(), spec)).end.failed
    assert failed.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_SANDBOX


async def test_a_full_node_takes_no_other_workspace(placer: Placer) -> None:
    workspaces = [await placer.ready() for _ in range(6)]
    refused = await reason_of(placer.prepare(placer.new_id()))
    assert refused == (grpc.StatusCode.RESOURCE_EXHAUSTED, "NODE_FULL")
    await placer.stop(workspaces[0])
    assert (await placer.prepare(placer.new_id())).kind == "prepared"


async def test_removal_follows_no_link_and_no_mode_stops_it(placer: Placer, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (outside / "closed").mkdir(mode=0o500)
    workspace_id = await placer.ready()
    root = placer.root(workspace_id)
    (root / "out").symlink_to(outside)
    (root / "self").symlink_to(".")
    (root / "file").symlink_to(outside / "kept")
    os.link(outside / "kept", root / "hard")
    for mode in (0o000, 0o500, 0o100):
        (root / f"d{mode:o}" / "below").mkdir(parents=True)
        (root / f"d{mode:o}" / "below" / "f").touch()
        (root / f"d{mode:o}" / "below").chmod(mode)
        (root / f"d{mode:o}").chmod(mode)
    await placer.remove(workspace_id)
    assert not (placer.house_data / "workspaces" / workspace_id).exists()
    assert list((placer.house_data / "trash").iterdir()) == []
    assert (outside / "kept").read_text() == "kept"
    assert (outside / "closed").stat().st_mode & 0o777 == 0o500


async def test_a_host_tells_what_it_is_and_has(placer: Placer) -> None:
    workspaces = sorted([await placer.ready() for _ in range(3)])
    first = await placer.stub.GetHost(api.GetHostRequest(page_size=2))
    rest = await placer.stub.GetHost(api.GetHostRequest(page_token=first.next_page_token))
    listed = [each.workspace_id for each in (*first.workspaces, *rest.workspaces)]
    assert (listed, rest.next_page_token) == (workspaces, "")
    assert first.node.load.workspaces == 3
    assert [each.name for each in first.node.directories] == ["it", "kept"]
    assert first.node.capacity.memory_bytes > 0


async def test_the_variables_of_a_workspace_are_those_of_its_processes(placer: Placer) -> None:
    spec = scratch()
    spec.environment.update(GREETING="hello", OTHER="declared")
    placer.enter(await placer.ready(spec))
    told = await placer.client.run("echo $GREETING $OTHER", environment={"OTHER": "given"})
    assert told.output.text == "hello given\n"


async def test_whoever_waits_is_told_of_as_long_as_it_waits(
    placer: Placer, marks: list[str]
) -> None:
    workspace_id = await placer.ready()
    placer.enter(workspace_id)
    marks.append("sleep\x008105")
    started = await placer.client.start("sleep 8105")
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(placer.client.wait(started.process.process_id))
        [hosted] = (await placer.stub.GetHost(api.GetHostRequest())).workspaces
        while not hosted.waits:
            [hosted] = (await placer.stub.GetHost(api.GetHostRequest())).workspaces
        assert (hosted.state, hosted.processes) == (workspace_pb2.WORKSPACE_STATE_BUSY, 1)
        await placer.stop(workspace_id)
    [hosted] = (await placer.stub.GetHost(api.GetHostRequest())).workspaces
    assert (hosted.waits, hosted.processes) == (0, 0)


async def test_a_fork_comes_home_and_tells_what_it_brought(placer: Placer) -> None:
    parent_id = await placer.ready(scratch(a="1\n2\n3\n", b="b"))
    fork_id = await placer.ready(fork(parent_id))
    (placer.root(fork_id) / "a").write_text("one\n2\n3\n")
    (placer.root(fork_id) / "b").unlink()
    (placer.root(parent_id) / "a").write_text("1\n2\nthree\n")
    shown = await placer.merge(fork_id, parent_id, dry_run=True)
    assert (shown.applied, list(shown.merged_paths)) == (False, ["a", "b"])
    report = await placer.merge(fork_id, parent_id)
    assert (report.applied, list(report.merged_paths)) == (True, ["a", "b"])
    assert (placer.root(parent_id) / "a").read_text() == "one\n2\nthree\n"
    assert os.listdir(placer.root(parent_id)) == ["a"]


async def test_a_conflict_leaves_the_parent_alone_unless_it_is_decided(placer: Placer) -> None:
    parent_id = await placer.ready(scratch(a="1\n", b="b"))
    fork_id = await placer.ready(fork(parent_id))
    (placer.root(fork_id) / "a").write_text("fork\n")
    (placer.root(fork_id) / "b").write_text("changed")
    (placer.root(parent_id) / "a").write_text("parent\n")
    report = await placer.merge(fork_id, parent_id)
    [conflict] = report.conflicts
    assert (report.applied, list(report.merged_paths)) == (False, [])
    assert (conflict.path, conflict.kind) == ("a", workspace_pb2.MERGE_CONFLICT_KIND_CONTENT)
    assert conflict.preview == "<<<<<<< parent\nparent\n=======\nfork\n>>>>>>> fork\n"
    assert (placer.root(parent_id) / "b").read_text() == "b"
    kept = await placer.merge(fork_id, parent_id, workspace_pb2.MERGE_STRATEGY_KEEP_PARENT)
    assert (kept.applied, list(kept.merged_paths)) == (True, ["b"])
    taken = await placer.merge(fork_id, parent_id, workspace_pb2.MERGE_STRATEGY_TAKE_FORK)
    assert (taken.applied, len(taken.conflicts)) == (True, 1)
    assert (placer.root(parent_id) / "a").read_text() == "fork\n"


async def test_what_is_no_fork_of_a_parent_is_not_merged_into_it(placer: Placer) -> None:
    one, other = await placer.ready(), await placer.ready()
    refused = await reason_of(placer.merge(one, other))
    assert refused == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_A_FORK")


async def test_a_directory_that_a_removed_workspace_has_again_is_removed_at_the_next_start(
    house: House,
) -> None:
    async with node(house), connected(house) as client:
        placer = Placer(client, house.data)
        workspace_id = await placer.ready()
        await placer.remove(workspace_id)
    # As the adoption of a process that ended with its workspace does.
    placer.logs(workspace_id).mkdir(parents=True)
    async with node(house), connected(house):
        directory = placer.root(workspace_id).parent
        await asyncio.to_thread(
            until, lambda: not directory.exists(), "the removal", within_s=WITHIN_S
        )
