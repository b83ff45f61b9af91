"""Measures workspaces of a node: what making one of each kind costs, and stopping a busy one.

Run it with `python bench/workspaces.py`. It starts one real toolrunner and prints one JSON object:
`create` is the time from asking to ready of each kind, over gRPC and with everything on disk, in
milliseconds; `fork` and `local` are of a tree of `--files` files, `git` of a repository with as
many, where the first fetch fills the mirror and is told apart; `merge` brings a tenth of them home.
`stop` is the time to end `--processes` processes that detached themselves, as the node tells it
and as the caller sees it. `plain` is the same tree copied by `cp -a` and cloned by `git clone`, in
the same run. `neighbours` is how long `true` takes in one workspace while another misbehaves, for
each way to do so, against how long it takes before and after; `p99_ratio` is what counts, and must
not be over 2. `--only neighbours` measures one part alone, `--level` holds the node at a level of
the sandbox and `--no-groups` leaves out control groups.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures
from bench.nodes import running

from parley.api.workspace.v1 import host_service_pb2 as api
from parley.api.workspace.v1 import (
    process_pb2,
    process_service_pb2,
    sandbox_pb2,
    template_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1.host_service_pb2_grpc import WorkspaceHostServiceStub
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.clock import SystemClock
from parley.process import TimeOrderedIds
from support.toolrunner.misbehaving import BOMBS, Felt, Latency, latency

CALL_S = 300
GIB = 1024**3
LOUD_PIDS = 100
#: So that everything is bounded by what a small machine has, too.
QUOTAS = {
    "TOOLRUNNER_WORKSPACE_MEMORY_BYTES": str(GIB),
    "TOOLRUNNER_WORKSPACE_DISK_BYTES": str(GIB),
    "TOOLRUNNER_WORKSPACE_INODES": "100000",
    "TOOLRUNNER_PROCESS_PIDS": "2000",
}


class Node:
    """A client of one toolrunner that hosts workspaces."""

    def __init__(self, host: WorkspaceHostServiceStub, processes: ProcessServiceStub) -> None:
        self.host = host
        self.processes = processes
        self.new_id = TimeOrderedIds(SystemClock(), random.SystemRandom())

    async def prepare(self, spec: api.WorkspaceSpec) -> str:
        """Have a workspace ready and return its id."""
        workspace_id = self.new_id()
        request = api.PrepareWorkspaceRequest(
            request_id=self.new_id(), workspace_id=workspace_id, epoch=1, spec=spec
        )
        end = None
        async for message in self.host.PrepareWorkspace(request, timeout=CALL_S):
            end = message
        if end is None or end.WhichOneof("kind") != "prepared":
            raise RuntimeError(f"it was not prepared: {end}")
        return workspace_id

    async def remove(self, workspace_id: str) -> None:
        """Remove a workspace."""
        request = api.RemoveWorkspaceRequest(
            request_id=self.new_id(), workspace_id=workspace_id, epoch=1
        )
        await self.host.RemoveWorkspace(request, timeout=CALL_S)

    async def merge(self, fork_id: str, parent_id: str) -> workspace_pb2.MergeReport:
        """Bring a fork home."""
        request = api.MergeWorkspaceRequest(
            request_id=self.new_id(),
            fork_workspace_id=fork_id,
            fork_epoch=1,
            parent_workspace_id=parent_id,
            parent_epoch=1,
        )
        return (await self.host.MergeWorkspace(request, timeout=CALL_S)).report

    async def begin(
        self, workspace_id: str, command: str
    ) -> tuple[workspace_pb2.WorkspaceContext, str]:
        """Start a command."""
        context = workspace_pb2.WorkspaceContext(
            workspace_id=workspace_id,
            epoch=1,
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )
        request = process_service_pb2.StartProcessRequest(
            context=context,
            request_id=self.new_id(),
            spec=process_pb2.ProcessSpec(command=command),
        )
        started = await self.processes.StartProcess(request)
        return context, started.process.process_id

    async def stop(self, workspace_id: str) -> api.WorkspaceHostServiceStopWorkspaceResponse:
        """End everything in a workspace at once."""
        request = api.WorkspaceHostServiceStopWorkspaceRequest(
            request_id=self.new_id(), workspace_id=workspace_id, epoch=1, grace_ms=0
        )
        return await self.host.StopWorkspace(request, timeout=CALL_S)

    async def run(self, workspace_id: str, command: str) -> None:
        """Run a command to its end."""
        context, process_id = await self.begin(workspace_id, command)
        wait = process_service_pb2.WaitOutputRequest(
            context=context,
            process_id=process_id,
            condition=process_pb2.WaitCondition(max_wait_ms=300_000),
        )
        await self.processes.WaitOutput(wait, timeout=CALL_S + 30)


def tree(directory: Path, files: int) -> None:
    """Write a tree like one of a program: many small files, a hundred to a directory."""
    for number in range(files):
        path = directory / f"d{number // 100}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line of {number}\n" * 100)


def git(directory: Path, *words: str) -> None:
    author = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    subprocess.run(("git", *author, *words), cwd=directory, check=True, capture_output=True)


async def timed_ms(work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = await work()
    return round((time.perf_counter() - started) * 1000, 1), result


def plain_ms(*words: str) -> float:
    started = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    return round((time.perf_counter() - started) * 1000, 1)


async def create(node: Node, specs: dict[str, api.WorkspaceSpec], rounds: int) -> dict[str, Any]:
    """Time each kind, one after another, several times."""
    times: dict[str, list[float]] = {kind: [] for kind in specs}
    for _ in range(rounds):
        for kind, spec in specs.items():
            took_ms, workspace_id = await timed_ms(partial(node.prepare, spec))
            times[kind].append(took_ms)
            await node.remove(workspace_id)
    return {
        kind: {"median_ms": statistics.median(taken), "max_ms": max(taken)}
        for kind, taken in times.items()
    }


async def merge(node: Node, data: Path, parent_id: str, files: int) -> dict[str, Any]:
    fork_id = await node.prepare(fork_of(parent_id))
    root = data / "workspaces" / fork_id / "files"
    for number in range(0, files, 10):
        with (root / f"d{number // 100}" / f"f{number}.py").open("a") as file:
            file.write("changed\n")
    took_ms, report = await timed_ms(lambda: node.merge(fork_id, parent_id))
    return {"ms": took_ms, "merged_paths": len(report.merged_paths), "of_files": files}


async def stop(node: Node, processes: int) -> dict[str, Any]:
    workspace_id = await node.prepare(scratch())
    # Half of them do not end when asked to.
    loop = (
        f"for i in $(seq {processes // 2}); do (setsid sleep 9001 >/dev/null 2>&1 &); "
        "(setsid sh -c 'trap \"\" TERM; sleep 9001' >/dev/null 2>&1 &); done"
    )
    await node.run(workspace_id, loop)
    took_ms, stopped = await timed_ms(lambda: node.stop(workspace_id))
    return {
        "processes": processes,
        "ended": stopped.ended_processes,
        "killed": stopped.killed_processes,
        "node_ms": stopped.duration_ms,
        "caller_ms": took_ms,
    }


async def neighbours(node: Node, rounds: int) -> dict[str, Any]:
    """Measure one workspace while another misbehaves."""
    quiet = await node.prepare(scratch())
    told: dict[str, Any] = {}

    async def work() -> None:
        await node.run(quiet, "true")

    await latency(work, rounds // 5)
    for name, command in BOMBS.items():
        before = await latency(work, rounds)
        spec = scratch()
        spec.limits.pids = LOUD_PIDS
        loud = await node.prepare(spec)
        await node.begin(loud, command)
        during = await latency(work, rounds)
        stop_ms, _ = await timed_ms(partial(node.stop, loud))
        await node.remove(loud)
        after = await latency(work, rounds)
        felt = Felt(Latency(before.times_ms + after.times_ms), during)
        told[name] = {**felt.figures(), "stop_ms": stop_ms}
    return told


def scratch() -> api.WorkspaceSpec:
    return api.WorkspaceSpec(scratch=template_pb2.ScratchSource(skeleton={"README": "hello"}))


def git_of(url: str, **fields: Any) -> api.WorkspaceSpec:
    return api.WorkspaceSpec(git=template_pb2.GitSource(url=url, branch="agent/b", **fields))


def local(*, overlay: bool) -> api.WorkspaceSpec:
    source = template_pb2.LocalSource(directory="offered", overlay=overlay)
    return api.WorkspaceSpec(local=source)


def fork_of(parent_id: str) -> api.WorkspaceSpec:
    source = api.ForkSource(parent_workspace_id=parent_id, parent_epoch=1)
    return api.WorkspaceSpec(fork=source)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    offered = directory / "offered"
    tree(offered, options.files)
    repository = directory / "repository"
    subprocess.run(("cp", "-a", offered, repository), check=True)  # noqa: ASYNC221 (set-up)
    git(repository, "init", "--quiet")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "all")
    url = f"file://{repository}"
    settings = {
        "TOOLRUNNER_GIT_PROTOCOLS": "file",
        "TOOLRUNNER_LOCAL_DIRECTORIES": f"offered={offered}",
        **QUOTAS,
        **({"TOOLRUNNER_SANDBOX_LEVEL": options.level} if options.level else {}),
        "TOOLRUNNER_CONTROL_GROUPS": str(not options.no_groups).lower(),
    }
    async with running(directory, settings) as served:
        host, processes = (
            WorkspaceHostServiceStub(served.channel),
            ProcessServiceStub(served.channel),
        )
        node = Node(host, processes)
        if options.only == "neighbours":
            return {"neighbours": await neighbours(node, options.neighbour_rounds)}
        if options.only == "stop":
            return {"stop": await stop(node, options.processes)}
        first_fetch_ms, _ = await timed_ms(lambda: node.prepare(git_of(url)))
        parent_id = await node.prepare(local(overlay=False))
        parent_copy = await node.prepare(fork_of(parent_id))
        specs = {
            "scratch": scratch(),
            "git": git_of(url),
            "git_depth_1": git_of(url, depth=1),
            "git_borrowed": git_of(url, worktree=True),
            "local": local(overlay=False),
            "local_overlay": local(overlay=True),
            "fork": fork_of(parent_copy),
        }
        return {
            "files": options.files,
            "create": await create(node, specs, options.rounds),
            "first_fetch_ms": first_fetch_ms,
            "plain": {
                "cp_ms": plain_ms("cp", "-a", str(offered), str(directory / "copy")),
                "clone_ms": plain_ms(
                    *("git", "clone", "--quiet", "--no-hardlinks"),
                    *(str(repository), str(directory / "clone")),
                ),
            },
            "merge": await merge(node, directory / "data", parent_copy, options.files),
            "stop": await stop(node, options.processes),
            **(
                {}
                if options.only == "create"
                else {"neighbours": await neighbours(node, options.neighbour_rounds)}
            ),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=500)
    parser.add_argument("--neighbour-rounds", type=int, default=200)
    parser.add_argument("--only", choices=["create", "neighbours", "stop"])
    parser.add_argument("--level", choices=["landlock", "ns"])
    parser.add_argument("--no-groups", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as directory:
        print_figures(uvloop.run(measure(options, Path(directory))))


if __name__ == "__main__":
    main()
