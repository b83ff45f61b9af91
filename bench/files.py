"""Measures files through toolrunner: searches against bare ripgrep, what reading and editing cost.

Run it with `python bench/files.py`. It starts one real toolrunner, lays out a tree of 50,000 files
and prints one JSON object: `search` compares searches through gRPC with ripgrep itself on the same
tree in the same run, alternating; `calls` is the time of single calls, journal and undo included;
`memory` is that of the program that works on files after all of it.
"""

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import uvloop

sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures
from bench.nodes import MEBIBYTE, quantiles, running

from parley.api.workspace.v1 import (
    file_pb2,
    sandbox_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1 import file_service_pb2 as api
from parley.api.workspace.v1.file_service_pb2_grpc import FileServiceStub
from parley.clock import SystemClock
from parley.process import TimeOrderedIds

FILES_PER_DIRECTORY = 100
LINES = 40


class Desk:
    """A client of one toolrunner and one workspace."""

    def __init__(self, files: FileServiceStub, pid: int, data: Path) -> None:
        self.files = files
        self.pid = pid
        self.new_id = TimeOrderedIds(SystemClock(), random.SystemRandom())
        self.context = workspace_pb2.WorkspaceContext(
            workspace_id=self.new_id(),
            chat_id=self.new_id(),
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )
        self.root = data / "workspaces" / self.context.workspace_id / "files"

    async def search(self, pattern: str, mode: "api.SearchMode.ValueType") -> api.SearchSummary:
        """Search everything and return the summary."""
        request = api.SearchFilesRequest(
            context=self.context,
            pattern=pattern,
            mode=mode,
            limit=10_000,
            timeout_ms=120_000,
            batched=True,
        )
        pieces = [piece async for piece in self.files.SearchFiles(request, timeout=150)]
        return pieces[-1].summary

    async def read(self, path: str) -> None:
        """Read the first page of a file."""
        await self.files.ReadFile(api.ReadFileRequest(context=self.context, path=path), timeout=60)

    async def write(self, path: str, content: bytes) -> None:
        """Write a whole file."""
        request = api.WriteFileRequest(
            context=self.context, request_id=self.new_id(), path=path, content=content
        )
        await self.files.WriteFile(request, timeout=60)

    async def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text."""
        edits = [file_pb2.TextEdit(old_text=old, new_text=new)]
        request = api.EditFilesRequest(
            context=self.context,
            request_id=self.new_id(),
            files=[file_pb2.FileEdit(path=path, edits=edits)],
        )
        answer = await self.files.EditFiles(request, timeout=60)
        assert answer.applied, answer

    async def find(self, query: str) -> None:
        """Find files by name."""
        request = api.FindFilesRequest(context=self.context, query=query)
        await self.files.FindFiles(request, timeout=120)

    async def list(self) -> None:
        """List the root."""
        request = api.ListDirectoryRequest(context=self.context)
        await self.files.ListDirectory(request, timeout=60)


def lay_out(root: Path, count: int) -> None:
    """Make a tree of files of text; one in a hundred has the rare word."""
    rng = random.Random(1)
    words = [f"word{number}" for number in range(2000)]
    for number in range(count):
        directory = root / f"d{number // FILES_PER_DIRECTORY:04}"
        directory.mkdir(exist_ok=True)
        lines = [" ".join(rng.choices(words, k=8)) for _ in range(LINES)]
        if number % 100 == 0:
            lines[LINES // 2] += " needle"
        (directory / f"f{number:06}.py").write_text("\n".join(lines) + "\n")


async def search(desk: Desk, rounds: int) -> dict[str, Any]:
    ripgrep = str(Path(sys.executable).parent / "rg")
    cases = {
        "rare word, matches": ("needle", api.SEARCH_MODE_MATCHES, ["--json"]),
        "no match": ("haystack", api.SEARCH_MODE_MATCHES, ["--json"]),
        "10,000 lines": ("word7", api.SEARCH_MODE_MATCHES, ["--json", "--max-count=10001"]),
        "files": ("needle", api.SEARCH_MODE_FILES, ["--files-with-matches"]),
    }
    told = {}
    for name, (pattern, mode, options) in cases.items():
        ours, plain, summary = [], [], api.SearchSummary()
        for _ in range(rounds):
            began_s = time.perf_counter()
            summary = await desk.search(pattern, mode)
            between_s = time.perf_counter()
            bare(ripgrep, [*options, pattern], desk.root, summary.matches or summary.files)
            ours.append(between_s - began_s)
            plain.append(time.perf_counter() - between_s)
        told[name] = {
            "toolrunner_ms": quantiles(ours),
            "ripgrep_ms": quantiles(plain),
            "ratio_p50": round(statistics.median(ours) / statistics.median(plain), 2),
            "matches": summary.matches,
            "files": summary.files,
        }
    return told


def bare(program: str, options: list[str], root: Path, wanted: int) -> None:
    """Run ripgrep and read as many lines as the search through the service gave."""
    command = [program, "--no-config", "--no-messages", *options, "./"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        found = 0
        for line in child.stdout:
            found += not line.startswith(b'{"type":"') or line.startswith(b'{"type":"match"')
            if found > max(wanted, 1):
                child.kill()
                break


async def calls(desk: Desk, rounds: int) -> dict[str, Any]:
    (desk.root / "large.txt").write_text("a line of some text\n" * 250_000)
    (desk.root / "small.txt").write_text("count: 0\n" + "another line\n" * 200)
    numbers = iter(range(10**9))

    async def edited() -> None:
        number = next(numbers)
        await desk.edit("small.txt", f"count: {number}\n", f"count: {number + 1}\n")

    acts: dict[str, Callable[[], Awaitable[None]]] = {
        "read 8 KiB": lambda: desk.read("d0000/f000000.py"),
        "read a page of 5 MB": lambda: desk.read("large.txt"),
        "write 1 KiB": lambda: desk.write("new.txt", os.urandom(1024)),
        "edit": edited,
        "list": desk.list,
        "find": lambda: desk.find("f0000*.py"),
    }
    told = {}
    for name, act in acts.items():
        spent_s = []
        for _ in range(max(3, rounds // 20) if name == "find" else rounds):
            began_s = time.perf_counter()
            await act()
            spent_s.append(time.perf_counter() - began_s)
        told[name] = quantiles(spent_s)
    return told


def worker_mib(desk: Desk) -> float:
    """Return what the program that works on files has in memory."""
    for child in psutil.Process(desk.pid).children(recursive=True):
        if "toolrunner.fileworker" in child.cmdline():
            return round(child.memory_info().rss / MEBIBYTE, 1)
    return 0.0


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        async with running(Path(directory)) as node:
            desk = Desk(FileServiceStub(node.channel), node.pid, node.data)
            await desk.list()
            await asyncio.to_thread(lay_out, desk.root, arguments.files)
            before_mib = worker_mib(desk)
            return {
                "files": arguments.files,
                "search": await search(desk, arguments.searches),
                "calls_ms": await calls(desk, arguments.rounds),
                "memory_mib": {"before": before_mib, "after": worker_mib(desk)},
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--searches", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=200)
    print_figures(uvloop.run(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
