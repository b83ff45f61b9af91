"""The programs: `python -m mcpgateway` and the demo's server."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mcpgateway.settings import Settings
from parley.secrets import Keyring
from support.host.ports import free_port
from support.mcpgateway.gateway import make_settings
from support.mcpgateway.servers import demo_process, until_listening

PATIENCE_S = 60  # Many programs may be starting on the machine, and a start is mostly imports.


def environment_of(settings: Settings) -> dict[str, str]:
    """Return the environment that gives these settings."""
    return {
        **os.environ,  # noqa: TID251 (handed on to the child)
        "MCPGATEWAY_LISTEN": str(settings.listen),
        "MCPGATEWAY_TRUST_FILE": str(settings.trust_file),
        "MCPGATEWAY_SIGNING_KEY_FILE": str(settings.signing_key_file),
        "MCPGATEWAY_DATABASE_URL": settings.database_url.reveal(),
        "MCPGATEWAY_MASTER_KEY_FILE": str(settings.master_key_file),
        "MCPGATEWAY_ENVIRONMENT": "development",
        "MCPGATEWAY_ALLOWED_HOSTS": "localhost:1,localhost:2",
    }


@asynccontextmanager
async def started(environment: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run mcpgateway, at most until the end of the test."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mcpgateway", env=environment, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def until_healthy(settings: Settings) -> None:
    """Wait until the health service says that calls are taken."""
    async with grpc.aio.insecure_channel(settings.listen.target) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        answer = await check(
            health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=PATIENCE_S
        )
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_it_starts_from_its_environment_and_ends_on_sigterm(
    tmp_path: Path, mcp_database: str
) -> None:
    settings, _ = make_settings(tmp_path, mcp_database)

    async with asyncio.timeout(PATIENCE_S), started(environment_of(settings)) as process:
        await until_healthy(settings)
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()

    assert (process.returncode, b"Traceback" in errors) == (0, False)


async def test_the_wrong_master_key_is_told_and_nothing_starts(
    tmp_path: Path, mcp_database: str
) -> None:
    settings, _ = make_settings(tmp_path, mcp_database)
    async with asyncio.timeout(PATIENCE_S):
        async with started(environment_of(settings)) as first:
            await until_healthy(settings)
            first.terminate()
            await first.communicate()
        Keyring.generate().save(settings.master_key_file)
        async with started(environment_of(settings)) as second:
            _, errors = await second.communicate()

    assert second.returncode == 2
    assert b"start with the key file that belongs to this database" in errors
    assert b"Traceback" not in errors


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MCPGATEWAY_ALLOWED_HOSTS", "localhost"),
        ("MCPGATEWAY_DEMO_SERVER_URL", "ftp://x"),
        ("MCPGATEWAY_MASTER_KEY_FILE", "/nonexistent/keys"),
    ],
)
async def test_a_wrong_setting_is_told_and_nothing_starts(
    tmp_path: Path, mcp_database: str, name: str, value: str
) -> None:
    settings, _ = make_settings(tmp_path, mcp_database)
    environment = {**environment_of(settings), name: value}

    async with asyncio.timeout(PATIENCE_S), started(environment) as process:
        _, errors = await process.communicate()

    assert process.returncode == 2
    assert value.encode() in errors
    assert b"Traceback" not in errors


async def test_the_demo_ends_on_sigterm() -> None:
    port = free_port()
    with demo_process(port) as process:
        await until_listening(port)
        process.terminate()

        assert process.wait(PATIENCE_S) == 0


async def test_the_demo_ends_with_its_parent() -> None:
    port = free_port()
    program = (
        "import os, subprocess, sys;"
        "child = subprocess.Popen([sys.executable, '-m', 'mcpgateway.demo'],"
        " env={**os.environ, 'MCP_DEMO_PARENT_PID': str(os.getpid()),"
        f" 'MCP_DEMO_LISTEN': '127.0.0.1:{port}'}});"
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE_S):
        parent = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert parent.stdout is not None
        child = os.pidfd_open(int(await parent.stdout.readline()))
        loop.add_reader(child, ended.set)
        try:
            await until_listening(port)
            parent.kill()
            await ended.wait()
        finally:
            loop.remove_reader(child)
            os.close(child)
        await parent.communicate()


def test_the_demo_does_not_start_for_a_parent_that_is_gone() -> None:
    with demo_process(free_port(), MCP_DEMO_PARENT_PID="1") as process:
        assert process.wait(PATIENCE_S) == 1


def test_the_demo_tells_what_is_wrong_with_its_settings() -> None:
    with demo_process(free_port(), MCP_DEMO_LISTEN="nowhere") as process:
        assert process.wait(PATIENCE_S) == 2
