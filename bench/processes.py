"""Measures processes through toolrunner: what starting one costs, how soon an end is told, memory.

Run it with `python bench/processes.py`. It starts one real toolrunner and prints one JSON object:
`execute_true` compares a start that is waited for through gRPC, journal included, with plain
`subprocess` in the same run, alternating; `wake_up` is the time from a process's own last act to
the waiter's answer, with 1 and with 200 who wait; `noisy` is the memory of the toolrunner and of
its spawner while 200 processes print as fast as they can.
"""

import argparse
import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import uvloop

sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures
from bench.nodes import MEBIBYTE, quantiles, running

from parley.api.workspace.v1 import (
    process_pb2,
    sandbox_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.clock import SystemClock
from parley.process import TimeOrderedIds

#: The limit on processes of one chat is 16 and of one workspace 64.
PER_CHAT, PER_WORKSPACE = 16, 64


#: A program that tells the time as its last act, by a Python that every sandbox shows.
LAST_ACT = (
    *(shutil.which("python3", path=os.defpath) or sys.executable, "-I", "-S", "-c"),
    "import os, time; time.sleep(0.3); os.write(1, b'%d' % time.monotonic_ns()); os._exit(0)",
)


class Runner:
    """A client of one toolrunner."""

    def __init__(self, processes: ProcessServiceStub, pid: int) -> None:
        self.processes = processes
        self.pid = pid
        self.new_id = TimeOrderedIds(SystemClock(), random.SystemRandom())
        self.workspace_id = self.new_id()

    def context(self, number: int = 0) -> workspace_pb2.WorkspaceContext:
        """Return a chat's context; every 16 processes another chat, every 64 another workspace."""
        if number % PER_WORKSPACE == 0:
            self.workspace_id = self.new_id()
        if number % PER_CHAT == 0:
            self.chat_id = self.new_id()
        return workspace_pb2.WorkspaceContext(
            workspace_id=self.workspace_id,
            chat_id=self.chat_id,
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )

    async def start(
        self, context: workspace_pb2.WorkspaceContext, spec: process_pb2.ProcessSpec
    ) -> str:
        """Start a process and return its id."""
        request = api.StartProcessRequest(context=context, request_id=self.new_id(), spec=spec)
        return (await self.processes.StartProcess(request)).process.process_id

    async def run(
        self, context: workspace_pb2.WorkspaceContext, spec: process_pb2.ProcessSpec
    ) -> None:
        """Start a process and hear of its end, as chatd does."""
        request = api.StartProcessRequest(
            context=context,
            request_id=self.new_id(),
            spec=spec,
            condition=process_pb2.WaitCondition(max_wait_ms=10_000),
        )
        if (await self.processes.StartProcess(request)).reason != process_pb2.WAIT_REASON_EXITED:
            raise AssertionError("what takes no time took too long")

    async def wait(
        self, context: workspace_pb2.WorkspaceContext, process_id: str
    ) -> api.WaitOutputResponse:
        """Wait for a process's end."""
        condition = process_pb2.WaitCondition(max_wait_ms=300_000)
        request = api.WaitOutputRequest(context=context, process_id=process_id, condition=condition)
        return await self.processes.WaitOutput(request, timeout=330)


async def execute_true(runner: Runner, rounds: int) -> dict[str, Any]:
    context = runner.context()
    spec = process_pb2.ProcessSpec(command="true")
    ours, plain = [], []
    service = psutil.Process(runner.pid)
    (spawner,) = service.children()
    spent_s = [processor_s(service), processor_s(spawner)]
    for at in range(rounds + 5):
        began_s = time.perf_counter()
        await runner.run(context, spec)
        between_s = time.perf_counter()
        plainly_run()
        if at >= 5:
            ours.append(between_s - began_s)
            plain.append(time.perf_counter() - between_s)
    return {
        "toolrunner_ms": quantiles(ours),
        "subprocess_ms": quantiles(plain),
        "ratio_p50": round(statistics.median(ours) / statistics.median(plain), 2),
        "service_processor_ms": per_round_ms(processor_s(service) - spent_s[0], rounds + 5),
        "spawner_processor_ms": per_round_ms(processor_s(spawner) - spent_s[1], rounds + 5),
        "rounds": rounds,
    }


def processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def per_round_ms(spent_s: float, rounds: int) -> float:
    return round(spent_s / rounds * 1000, 2)


def plainly_run() -> None:
    subprocess.run(["sh", "-c", "true"], check=True, capture_output=True)


async def wake_up(runner: Runner, waiters: int, rounds: int) -> dict[str, Any]:
    """The process writes the time as its last act; all who wait note when they are answered."""
    context = runner.context()
    spec = process_pb2.ProcessSpec(argv=process_pb2.ArgumentVector(arguments=LAST_ACT))
    late_s: list[float] = []
    plain_late_s = []

    async def one(process_id: str) -> None:
        waited = await runner.wait(context, process_id)
        late_s.append((time.monotonic_ns() - int(waited.output.text)) / 1e9)

    for _ in range(rounds):
        process_id = await runner.start(context, spec)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(waiters):
                tasks.create_task(one(process_id))
        last_act_ns = int(await asyncio.to_thread(subprocess.check_output, LAST_ACT))
        plain_late_s.append((time.monotonic_ns() - last_act_ns) / 1e9)
    return {
        "waiters": waiters,
        "rounds": rounds,
        "late_ms": quantiles(late_s),
        "subprocess_late_ms": quantiles(plain_late_s),
    }


async def noisy(runner: Runner, count: int, megabytes: int) -> dict[str, Any]:
    service = psutil.Process(runner.pid)
    (spawner,) = service.children()
    before = service.memory_info().rss
    spec = process_pb2.ProcessSpec(
        command=f"yes 'a line of output' | head -c {megabytes}000000", log_bytes=MEBIBYTE
    )
    began_s = time.perf_counter()
    started = []
    for at in range(count):
        context = runner.context(at)
        started.append((context, await runner.start(context, spec)))
    peak = service.memory_info().rss
    async with asyncio.TaskGroup() as tasks:
        waits = [tasks.create_task(runner.wait(*each)) for each in started]
        while not all(wait.done() for wait in waits):
            peak = max(peak, service.memory_info().rss)
            await asyncio.sleep(0.05)
    printed = sum(wait.result().process.output_bytes for wait in waits)
    elapsed_s = time.perf_counter() - began_s
    return {
        "processes": count,
        "printed_mb": printed // 1_000_000,
        "mb_per_s": round(printed / 1e6 / elapsed_s, 1),
        "before_mib": round(before / MEBIBYTE, 1),
        "peak_mib": round(peak / MEBIBYTE, 1),
        "after_mib": round(service.memory_info().rss / MEBIBYTE, 1),
        "spawner_mib": round(spawner.memory_info().rss / MEBIBYTE, 1),
    }


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        async with running(Path(directory)) as node:
            runner = Runner(ProcessServiceStub(node.channel), node.pid)
            return {
                "execute_true": await execute_true(runner, arguments.rounds),
                "wake_up": [
                    await wake_up(runner, 1, arguments.wake_ups),
                    await wake_up(runner, 200, max(1, arguments.wake_ups // 10)),
                ],
                "noisy": await noisy(runner, arguments.noisy, arguments.megabytes),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--wake-ups", type=int, default=100)
    parser.add_argument("--noisy", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=100, help="that each of them prints")
    print_figures(uvloop.run(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
