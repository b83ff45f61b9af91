"""Figures of the sandbox: what confining costs, how fast a workspace ends, what neighbours feel.

Run it with `python bench/sandbox.py`, or name parts: `python bench/sandbox.py starts neighbours`.
Everything goes through a real spawner, once for each level that this machine offers and once with
nothing that confines, in turns, so that all see the same machine. It prints one JSON object.

    starts      from asking for `true` until its end is known, in milliseconds, by level
    first       the first process of a workspace, whose namespaces and files have to be made
    stop        ending a workspace of 500 processes, in milliseconds, by level
    neighbours  p99 of `true` in another workspace while one misbehaves, as a ratio to before; by
                the kernel's limits alone, without the node that looks (see `bench/workspaces.py`)
"""

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures

from support.toolrunner.jail import Jail
from support.toolrunner.misbehaving import BOMBS
from support.toolrunner.sandboxes import offered
from toolrunner.primitives.domain import Limits
from toolrunner.sandbox import Level

ROUNDS = 100
FIRST_ROUNDS = 20
PROCESSES = 500
NEIGHBOUR_ROUNDS = 100
MIB = 1024**2
LIMITS = Limits(pids=200, memory_bytes=512 * MIB, file_bytes=512 * MIB)


def new_directory() -> Path:
    """Make one that users of workspaces can walk through."""
    directory = Path(tempfile.mkdtemp(prefix="parley-bench-"))
    directory.chmod(0o711)
    return directory


@asynccontextmanager
async def jails() -> AsyncIterator[dict[str, Jail]]:
    """Give one spawner for each level; `plain` confines nothing and limits nothing."""
    async with AsyncExitStack() as stack:
        opened: dict[str, Jail] = {}
        for level in (Level.NONE, *offered()):
            directory = new_directory()
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            jail = await stack.enter_async_context(Jail.opened(directory, level))
            opened["plain" if level is Level.NONE else level.word] = jail
        yield opened


async def timed(jail: Jail, workspace: str = "w1") -> float:
    """Run `true` and return how long that took, in milliseconds."""
    launch = jail.launch("true", workspace=workspace)
    if jail.sandbox.report.level is Level.NONE:
        launch = replace(launch, confinement=None)
    ended = asyncio.get_running_loop().create_future()
    begun_s = time.perf_counter()
    launched = await jail.spawner.start(launch, lambda _, exit: ended.set_result(exit))
    await ended
    took_ms = (time.perf_counter() - begun_s) * 1000
    launched.close()
    await jail.spawner.forget(launch.process_id)
    return took_ms


def figures(times: list[float]) -> dict[str, float]:
    """Return the middle and the slow end."""
    ordered = sorted(times)
    return {
        "p50_ms": round(statistics.median(ordered), 2),
        "p99_ms": round(ordered[int(len(ordered) * 0.99) - 1], 2),
    }


async def starts() -> dict[str, object]:
    """Measure starts in a workspace that has processes, in turns."""
    async with jails() as opened:
        times: dict[str, list[float]] = {name: [] for name in opened}
        for jail in opened.values():
            await jail.begin("sleep", "600")
        for _ in range(ROUNDS):
            for name, jail in opened.items():
                times[name].append(await timed(jail))
        return {name: figures(each) for name, each in times.items()}


async def first() -> dict[str, object]:
    """Measure the first start in a workspace, in turns."""
    async with jails() as opened:
        times: dict[str, list[float]] = {name: [] for name in opened}
        for number in range(FIRST_ROUNDS):
            for name, jail in opened.items():
                times[name].append(await timed(jail, f"new{number}"))
        return {name: figures(each) for name, each in times.items()}


async def stop() -> dict[str, object]:
    """Measure how long it takes to end a workspace full of processes."""
    told: dict[str, object] = {}
    async with jails() as opened:
        for name, jail in opened.items():
            sleepers = f"for i in $(seq {PROCESSES - 1}); do sleep 600 & done; echo up; wait"
            launched = await jail.spawner.start(
                jail.launch("bash", "-c", sleepers), lambda _, exit: None
            )
            await asyncio.to_thread(os.read, launched.output_fd, 10)
            launched.close()
            begun_s = time.perf_counter()
            await jail.stop()
            told[name] = {"ms": round((time.perf_counter() - begun_s) * 1000)}
    return told


async def neighbours() -> dict[str, object]:
    """Measure a workspace while its neighbour misbehaves, with everything that limits it."""
    told: dict[str, object] = {}
    async with jails() as opened:
        for name, jail in opened.items():
            if name == "plain":
                continue
            ratios: dict[str, object] = {}
            await jail.begin("sleep", "600", workspace="quiet")
            for bomb, command in BOMBS.items():
                before = figures([await timed(jail, "quiet") for _ in range(NEIGHBOUR_ROUNDS)])
                async with misbehaving(jail, command):
                    during = figures([await timed(jail, "quiet") for _ in range(NEIGHBOUR_ROUNDS)])
                ratio = round(during["p99_ms"] / before["p99_ms"], 2)
                ratios[bomb] = {"before": before, "during": during, "p99_ratio": ratio}
            told[name] = ratios
    return told


@asynccontextmanager
async def misbehaving(jail: Jail, command: str) -> AsyncIterator[None]:
    """Have a program at work in another workspace, and somebody who reads what it prints."""
    launch = jail.launch("sh", "-c", command, workspace="loud", limits=LIMITS)
    launched = await jail.spawner.start(launch, lambda _, exit: None)
    reading = asyncio.create_task(asyncio.to_thread(drain, launched.output_fd))
    try:
        yield
    finally:
        await jail.stop("loud")
        await reading
        await jail.spawner.forget(launch.process_id)


def drain(fd: int) -> None:
    """Read to the end, as the service does."""
    with os.fdopen(fd, "rb", 0) as output:
        while output.read(65536):
            pass


PARTS: dict[str, Callable[[], Awaitable[dict[str, object]]]] = {
    "starts": starts,
    "first": first,
    "stop": stop,
    "neighbours": neighbours,
}


async def main(parts: list[str]) -> None:
    """Measure what was named."""
    print_figures({name: await PARTS[name]() for name in parts})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[*PARTS])
    asyncio.run(main(parser.parse_args().parts or [*PARTS]))
