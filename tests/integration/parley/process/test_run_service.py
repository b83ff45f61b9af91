"""A service as a real process: what it prints, what ends it, and its exit code."""

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID

import pytest

PROGRAM = Path(__file__).with_name("demo_service.py")
SETTINGS = {
    "DEMO_LISTEN": "unix:/nowhere/demo.sock",
    "DEMO_TRUST_FILE": "/nowhere/trust.json",
    "DEMO_SIGNING_KEY_FILE": "/nowhere/key.pem",
}
# A parent that starts the service, tells its own pid, and stays until it is killed.
PARENT = f"""
import os, signal, subprocess, sys
child = subprocess.Popen(
    [sys.executable, {str(PROGRAM)!r}], env={{**os.environ, "DEMO_PARENT_PID": str(os.getpid())}}
)
signal.pause()
"""


# Starts the service with fewer open files than are allowed, as a login shell does.
SHELL = f"""
import os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2]) or hard))
os.execv(sys.executable, [sys.executable, {str(PROGRAM)!r}])
"""


@asynccontextmanager
async def started(*arguments: str, **settings: str) -> AsyncIterator[Process]:
    """Start a Python program with the demo's settings, and leave nothing behind."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(arguments or (str(PROGRAM),)),
        env={**SETTINGS, **settings},
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(30):
            yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def ended(**settings: str) -> tuple[int | None, str, str]:
    """Run the demo to its end; return its exit code and what it printed."""
    async with started(**settings) as process:
        stdout, stderr = await process.communicate()
    return process.returncode, stdout.decode(), stderr.decode()


async def line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def test_every_problem_with_the_settings_is_printed_at_once() -> None:
    code, _, stderr = await ended(
        DEMO_LISTEN="nonsense",
        DEMO_TRUST_FILE="",
        DEMO_SECONDS="long",
        DEMO_MODUS="wait",
        DEMO_PASSWORD_FILE="/nowhere/password",
    )
    assert code == 2
    assert stderr.startswith("demo: 5 problems with the configuration:\n")
    named = [problem.split()[1] for problem in stderr.splitlines()[1:]]
    assert named == [
        "DEMO_MODUS",
        "DEMO_LISTEN",
        "DEMO_TRUST_FILE",
        "DEMO_PASSWORD_FILE",
        "DEMO_SECONDS",
    ]


async def test_a_single_problem_is_a_single_line() -> None:
    assert await ended(DEMO_SECONDS="long") == (
        2,
        "",
        "demo: DEMO_SECONDS is 'long', give a number\n",
    )


async def test_a_configuration_error_of_the_service_is_one_message() -> None:
    assert await ended(DEMO_MODE="misconfigured") == (
        2,
        "",
        "demo: the key file does not fit the database: give the right one\n",
    )


async def test_a_taken_metrics_port_is_one_message() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert await ended(DEMO_METRICS_LISTEN=address) == (
            2,
            "",
            f"demo: cannot serve metrics on {address}: address already in use; "
            "stop the process that listens there, or give another port\n",
        )


async def test_a_service_that_is_done_exits_with_0() -> None:
    assert await ended(DEMO_MODE="finish") == (0, "", "")


async def test_a_failure_is_logged_with_its_traceback_and_without_secrets() -> None:
    code, _, stderr = await ended(
        DEMO_MODE="fail", DEMO_PASSWORD="canary-7f3a91", DEMO_LOG_FORMAT="json"
    )
    logged = json.loads(stderr)
    assert code == 1
    assert (logged["service"], logged["message"]) == ("demo", "demo failed")
    assert logged["exception"].endswith("RuntimeError: could not log in with [redacted]")
    assert "canary-7f3a91" not in stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_the_service_stop_in_its_own_way(number: signal.Signals) -> None:
    async with started() as process:
        assert await line(process) == "ready"
        process.send_signal(number)
        stdout, stderr = await process.communicate()
    assert (process.returncode, stdout, stderr) == (0, b"stopped\n", b"")


async def test_a_second_signal_ends_a_service_that_does_not_stop() -> None:
    async with started(DEMO_MODE="ignore") as process:
        assert await line(process) == "ready"
        process.send_signal(signal.SIGINT)
        assert await line(process) == "not yet"
        process.send_signal(signal.SIGINT)
        _, stderr = await process.communicate()
    assert (process.returncode, stderr) == (128 + signal.SIGINT, b"demo: stopped at once\n")


async def test_a_second_signal_ends_a_service_whose_loop_hangs() -> None:
    async with started(DEMO_MODE="hang") as process:
        assert await line(process) == "ready"
        # Two different ones, because the kernel merges equal signals that are still pending.
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        await process.wait()
    assert process.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM)


async def test_a_service_ends_when_its_parent_is_killed() -> None:
    async with started("-c", PARENT) as parent:
        assert await line(parent) == "ready"
        parent.kill()
        assert parent.stdout is not None
        # The child shares this pipe: its end is the end of both.
        assert await parent.stdout.read() == b"stopped\n"


async def test_a_service_does_not_start_when_its_parent_is_gone() -> None:
    not_its_parent = os.getppid()
    code, stdout, stderr = await ended(DEMO_PARENT_PID=str(not_its_parent))
    assert (code, stdout) == (1, "")
    assert stderr.startswith(f"demo: its parent {not_its_parent} is gone")


@pytest.mark.parametrize(("environment", "dumpable"), [("production", 0), ("development", 1)])
async def test_only_in_production_is_the_memory_out_of_reach(
    environment: str, dumpable: int
) -> None:
    code, stdout, stderr = await ended(DEMO_MODE="show", DEMO_ENVIRONMENT=environment)
    shown = stdout.splitlines()
    assert (code, shown[0], shown[-1]) == (0, f"dumpable {dumpable}", "loop uvloop")
    assert UUID(stderr.strip().rpartition(" ")[2]).version == 7


async def test_a_service_may_open_as_many_files_as_its_hard_limit_allows() -> None:
    async with started("-c", SHELL, "256", "2000", DEMO_MODE="show") as process:
        stdout, _ = await process.communicate()
    lines = stdout.decode().splitlines()
    assert "open files 2000" in lines
    assert "open files at start 256" in lines


async def test_a_service_without_open_files_left_says_so_once() -> None:
    async with started("-c", SHELL, "100", "200", DEMO_MODE="exhaust") as process:
        _, stderr = await process.communicate()
    told = [each for each in stderr.decode().splitlines() if "files open" in each]
    again = [each for each in stderr.decode().splitlines() if "can open files again" in each]
    assert (process.returncode, len(told), len(again)) == (0, 1, 1)
    assert "EMFILE" in told[0]
