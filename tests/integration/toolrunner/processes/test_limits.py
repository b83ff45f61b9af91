"""What a process may use: kept by the kernel, and told by how it ends."""

import errno
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.api.workspace.v1 import process_pb2, sandbox_pb2
from parley.process import OpenFiles
from parley.process.open_files import LIMIT_MAX
from support.toolrunner.node import Client, House, connected, toolrunner
from support.toolrunner.spawned import printed
from toolrunner.primitives.domain import Exit, Limits, ProcessId, WorkspaceId
from toolrunner.spawner.client.spawner import Launch, LaunchFailed, SpawnerProcess
from toolrunner.spawner.client.startup import running_spawner

MEBIBYTE = 1024 * 1024


@pytest.fixture
async def spawner(tmp_path: Path) -> AsyncIterator[SpawnerProcess]:
    async with running_spawner(tmp_path, adoption_s=0, has_groups=False) as running:
        yield running.process


def launch_of(root: Path, command: str, limits: Limits, *required: str) -> Launch:
    return Launch(
        process_id=ProcessId("p1"),
        workspace_id=WorkspaceId("w1"),
        argv=("sh", "-c", command),
        root=root,
        workdir=".",
        environment={"PATH": f"{Path(sys.executable).parent}:{os.defpath}"},
        limits=limits,
        required=required,
    )


@pytest.mark.parametrize(
    ("limits", "command", "text"),
    [
        (Limits(open_files=64), "ulimit -Sn; ulimit -Hn", "64\n64\n"),
        (Limits(file_bytes=4096), "ulimit -f", "8\n"),
        (Limits(cpu_s=7), "ulimit -St; ulimit -Ht", "7\n12\n"),
        (Limits(memory_bytes=64 * MEBIBYTE), "ulimit -d", "65536\n"),
        (Limits(), "ulimit -c", "0\n"),
    ],
)
async def test_a_process_has_the_limits_it_was_given(
    spawner: SpawnerProcess, tmp_path: Path, limits: Limits, command: str, text: str
) -> None:
    assert await printed(spawner, launch_of(tmp_path, command, limits)) == (
        text,
        Exit(exit_code=0),
    )


async def test_a_process_may_open_as_many_files_as_the_service_could_at_its_start(
    tmp_path: Path,
) -> None:
    open_files = OpenFiles(limit=1000, limit_at_start=300)
    async with running_spawner(
        tmp_path, adoption_s=0, has_groups=False, open_files=open_files
    ) as running:
        launch = launch_of(tmp_path, "ulimit -Sn", Limits())
        assert await printed(running.process, launch) == ("300\n", Exit(exit_code=0))


async def test_commands_of_a_service_keep_the_limit_that_it_was_started_with(
    house: House,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (500, hard))
        async with toolrunner(house) as process:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            async with connected(house) as client:
                seen = await client.run("ulimit -Sn")
                own = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert seen.output.text == "500\n"
    assert own[0] == min(own[1], LIMIT_MAX)


async def test_whoever_writes_too_long_a_file_is_ended(
    spawner: SpawnerProcess, tmp_path: Path
) -> None:
    command = "exec head -c 1000000 /dev/zero > big"
    _, exit = await printed(spawner, launch_of(tmp_path, command, Limits(file_bytes=65_536)))
    assert exit == Exit(exit_code=None, signal_number=signal.SIGXFSZ)
    assert (tmp_path / "big").stat().st_size == 65_536


async def test_whoever_uses_too_much_of_the_processor_is_ended(
    spawner: SpawnerProcess, tmp_path: Path
) -> None:
    command = "while :; do :; done"
    _, exit = await printed(spawner, launch_of(tmp_path, command, Limits(cpu_s=1)))
    assert exit == Exit(exit_code=None, signal_number=signal.SIGXCPU)


async def test_whoever_fills_too_much_memory_gets_no_more(
    spawner: SpawnerProcess, tmp_path: Path
) -> None:
    program = "x = bytearray(300 * 1024 * 1024); print(len(x))"
    command = f"exec {sys.executable} -I -S -c '{program}' 2>&1 | tail -n 1"
    text, _ = await printed(
        spawner, launch_of(tmp_path, command, Limits(memory_bytes=200 * MEBIBYTE))
    )
    assert text == "MemoryError\n"


async def test_a_limit_that_nobody_can_keep_keeps_it_from_starting(
    spawner: SpawnerProcess, tmp_path: Path
) -> None:
    with pytest.raises(LaunchFailed) as failed:
        await printed(spawner, launch_of(tmp_path, "true", Limits(pids=5), "pids"))
    assert (failed.value.stage, failed.value.errno) == ("limits", errno.EOPNOTSUPP)
    # The same for everyone is kept where it can be.
    assert (await printed(spawner, launch_of(tmp_path, "true", Limits(pids=5))))[1] == Exit(0)


async def test_a_caller_narrows_the_memory_of_one_process(client: Client) -> None:
    limits = sandbox_pb2.ResourceLimits(memory_bytes=96 * MEBIBYTE)
    waited = await client.run("ulimit -d", limits=limits)
    assert waited.output.text == f"{96 * 1024}\n"


async def test_limits_of_the_node_hold_for_every_process(house: House) -> None:
    settings = {"TOOLRUNNER_PROCESS_OPEN_FILES": "77", "TOOLRUNNER_PROCESS_FILE_BYTES": "51200"}
    async with toolrunner(house, **settings), connected(house) as client:
        waited = await client.run("ulimit -n; ulimit -f")
        assert waited.output.text == "77\n100\n"
        ended = await client.run("exec head -c 60000 /dev/zero > big")
        assert ended.process.exit == process_pb2.ProcessExit(
            signal="SIGXFSZ", shell_exit_code=128 + signal.SIGXFSZ
        )
