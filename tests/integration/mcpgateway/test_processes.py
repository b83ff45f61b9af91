"""The programs: `python -m mcpgateway` and the demo's server."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from parley.secrets import Keyring
from support.host.ports import free_port
from support.mcpgateway.gateway import make_settings
from support.mcpgateway.processes import PATIENCE_S, environment_of, started, until_healthy
from support.mcpgateway.servers import demo_process, until_listening

#: Is checked, not only read.
ALLOWED = "localhost:1,localhost:2"


async def test_it_starts_from_its_environment_and_ends_on_sigterm(
    tmp_path: Path, mcp_database: str
) -> None:
    settings, _ = make_settings(tmp_path, mcp_database)

    async with asyncio.timeout(PATIENCE_S), started(environment_of(settings, ALLOWED)) as process:
        await until_healthy(settings)
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()

    assert (process.returncode, b"Traceback" in errors) == (0, False)


async def test_the_wrong_master_key_is_told_and_nothing_starts(
    tmp_path: Path, mcp_database: str
) -> None:
    settings, _ = make_settings(tmp_path, mcp_database)
    async with asyncio.timeout(PATIENCE_S):
        async with started(environment_of(settings, ALLOWED)) as first:
            await until_healthy(settings)
            first.terminate()
            await first.communicate()
        Keyring.generate().save(settings.master_key_file)
        async with started(environment_of(settings, ALLOWED)) as second:
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
    environment = {**environment_of(settings, ALLOWED), name: value}

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
