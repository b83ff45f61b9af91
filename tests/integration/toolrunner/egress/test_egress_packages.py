"""A package installed by a real pip through a preset of the allow-list, and by no other way."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.net.package_index import PACKAGE, PackageIndex
from support.toolrunner.egress_stage import PATIENCE_S, PUBLIC, Stage, staged
from toolrunner.egress import Preset, variables_of

OWN = Preset.parse("pypi=index.example:443 files.example:443")

ANSWERS: dict[str, list[tuple[str, ...]]] = {
    "index.example": [(PUBLIC,)],
    "files.example": [(PUBLIC,)],
    "evil.example": [(PUBLIC,)],
}


@asynccontextmanager
async def indexed(directory: Path) -> AsyncIterator[Stage]:
    """Run a proxy that lets a workspace reach what pip needs."""
    async with staged(
        directory,
        allowed=(),
        presets=("pypi",),
        own_presets=(OWN,),
        answers=ANSWERS,
        certified=tuple(ANSWERS),
    ) as stage:
        yield stage


async def pip(stage: Stage, files: Path, index: str) -> tuple[int, str]:
    """Install the package as a workspace would that has only the variables of the proxy."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "pip", "install", "--isolated", "--no-cache-dir"),
        *("--no-input", "--disable-pip-version-check", "--retries", "0", "--no-deps"),
        *("--cert", str(files / "authority.pem"), "--target", str(files / "installed")),
        *("--index-url", index, PACKAGE),
        env={
            "HOME": str(files),
            **variables_of((), port=stage.endpoint.port, token=stage.endpoint.token),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE_S * 6):
        output, _ = await program.communicate()
    assert program.returncode is not None
    return program.returncode, output.decode()


async def test_pip_installs_through_the_preset_of_its_index(tmp_path: Path) -> None:
    index = PackageIndex(base="https://files.example/files/")
    async with indexed(tmp_path) as stage:
        stage.secured.handler = index.serve
        code, output = await pip(stage, tmp_path, "https://index.example/simple")
        places = [record.host_port for record in stage.audit.access_records]

    assert code == 0, output
    assert (tmp_path / "installed" / "parley_probe.py").exists()
    assert set(places) == {"index.example:443", "files.example:443"}


async def test_pip_gets_nothing_from_an_index_that_no_preset_names(tmp_path: Path) -> None:
    index = PackageIndex()
    async with indexed(tmp_path) as stage:
        stage.secured.handler = index.serve
        code, output = await pip(stage, tmp_path, "https://evil.example/simple")
        outcomes = {record.outcome for record in stage.audit.access_records}

    assert code != 0
    assert "No matching distribution found" in output
    assert (index.served, outcomes) == ([], {"not_allowed"})
