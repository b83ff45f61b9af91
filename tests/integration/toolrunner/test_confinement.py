"""A launcher between a new process and its program: what it gets, and what it may tell."""

import errno
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.spawned import printed
from toolrunner.domain import Exit, ProcessId, WorkspaceId
from toolrunner.spawner_program import running_spawner
from toolrunner.spawning import Confinement, Launch, LaunchFailed, SpawnerProcess

#: Says what it was given, puts a mark before the program's words, and becomes the program.
LAUNCHER = """
import json, os, sys
os.set_inheritable(3, False)
os.environ["CONFINED"] = "yes"
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    os.write(3, json.dumps({"stage": "exec", "errno": error.errno}).encode())
"""
REPORTING = Confinement(
    (sys.executable, "-I", "-S", "-c", LAUNCHER), {"PATH": os.defpath}, is_reporting=True
)


@pytest.fixture
async def spawner(tmp_path: Path) -> AsyncIterator[SpawnerProcess]:
    async with running_spawner(tmp_path, adoption_s=0) as running:
        yield running.process


def launch_of(root: Path, *argv: str, confinement: Confinement) -> Launch:
    return Launch(
        process_id=ProcessId("p1"),
        workspace_id=WorkspaceId("w1"),
        argv=argv,
        root=root,
        workdir=".",
        environment={"PATH": os.defpath, "LD_PRELOAD": "/hostile.so"},
        confinement=confinement,
    )


async def test_a_launcher_stands_before_the_program_and_gets_none_of_its_variables(
    spawner: SpawnerProcess, tmp_path: Path
) -> None:
    launch = launch_of(
        tmp_path, "sh", "-c", "echo $CONFINED-$LD_PRELOAD; ls /proc/self/fd", confinement=REPORTING
    )
    text, exit = await printed(spawner, launch)
    first, *descriptors = text.split()
    assert (first, exit) == ("yes-", Exit(exit_code=0))
    # The last is the directory that ls reads.
    assert descriptors == ["0", "1", "2", "3"]


async def test_a_launcher_tells_why_the_program_could_not_be_run(
    spawner: SpawnerProcess, tmp_path: Path
) -> None:
    with pytest.raises(LaunchFailed) as failed:
        await printed(spawner, launch_of(tmp_path, "no-such-program", confinement=REPORTING))
    assert (failed.value.stage, failed.value.errno) == ("exec", errno.ENOENT)


async def test_a_launcher_that_is_not_there_is_not_taken_for_the_program(
    spawner: SpawnerProcess, tmp_path: Path
) -> None:
    missing = Confinement(("/no/such/launcher",))
    with pytest.raises(LaunchFailed) as failed:
        await printed(spawner, launch_of(tmp_path, "true", confinement=missing))
    assert (failed.value.stage, failed.value.errno) == ("confinement", errno.ENOENT)


async def test_a_launcher_that_dies_and_leaves_the_report_open_holds_nobody_up(
    spawner: SpawnerProcess, tmp_path: Path
) -> None:
    leaving = Confinement(
        ("sh", "-c", "sleep 7801 >/dev/null 2>&1 & exit 9"), {"PATH": os.defpath}, is_reporting=True
    )
    _, exit = await printed(spawner, launch_of(tmp_path, "true", confinement=leaving))
    assert exit == Exit(exit_code=9)
