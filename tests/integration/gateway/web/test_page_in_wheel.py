"""The wheel of Parley ships the page as built: installed from it, no Node is needed."""

import asyncio
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.web.page_files import load_page_files
from parley.identity import ApiKey
from support.gateway.processes import environment_of, http_port_of, started
from support.gateway.stack import make_settings
from support.net.http_client import HttpClient

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[4]
PIP = (sys.executable, "-m", "pip")
BUILD_S_MAX = 300
START_S_MAX = 120
BUILT = "gateway/web/built/"
COMPRESSED = {".br", ".gz"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, with the page as it is built here."""
    if not load_page_files().is_built:
        pytest.skip("the page is not built: run scripts/page")
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            *(*PIP, "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"),
            *("--wheel-dir", str(directory), str(ROOT)),
        ],
        check=True,
        timeout=BUILD_S_MAX,
    )
    (packed,) = directory.glob("*.whl")
    return packed


def test_the_wheel_has_the_built_page_and_not_its_sources(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    built = ROOT / "services" / "gateway" / "web" / "built"
    expected = {path.name for path in built.rglob("*") if path.is_file() and path.name != ".stamp"}
    shipped = {Path(name).name for name in names if name.startswith(BUILT)} - {".stamp"}
    assert shipped == expected
    assert [name for name in names if "node_modules" in name or name.endswith(".tsx")] == []


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """Install the wheel beside it, and return the directory of its packages."""
    directory = wheel.parent / "installed"
    subprocess.run(
        [*PIP, "install", "--quiet", "--no-deps", "--no-index", "--target", directory, wheel],
        check=True,
        timeout=BUILD_S_MAX,
    )
    return directory


def place_of_gateway(variables: Mapping[str, str]) -> Path:
    """Return the file that `python -m gateway` imports first."""
    imported = subprocess.run(
        [sys.executable, "-c", "import gateway; print(gateway.__file__)"],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=START_S_MAX,
    )
    return Path(imported.stdout.strip())


async def test_a_gateway_that_is_installed_from_the_wheel_serves_the_page_without_node(
    installed: Path, tmp_path: Path, identity_database: str
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    settings = make_settings(tmp_path, identity_database, ApiKey.generate())
    variables = environment_of(settings, "127.0.0.1:0") | {
        "PATH": str(programs),
        "PYTHONPATH": str(installed),
    }
    built = installed / BUILT
    wanted = {"/": built / "index.html", "/terminal": built / "terminal.html"} | {
        f"/assets/{path.name}": path
        for path in (built / "assets").iterdir()
        if path.suffix not in COMPRESSED
    }
    imported = await asyncio.to_thread(place_of_gateway, variables)
    async with asyncio.timeout(START_S_MAX), started(variables) as process:
        client = HttpClient(await http_port_of(process))
        replies = {path: await client.request("GET", path) for path in wanted}

    assert imported.is_relative_to(installed)
    assert {path: reply.status for path, reply in replies.items()} == dict.fromkeys(wanted, 200)
    assert [path for path, file in wanted.items() if replies[path].body != file.read_bytes()] == []


async def test_a_gateway_without_the_built_page_serves_the_api_and_says_what_is_missing(
    installed: Path, tmp_path: Path, identity_database: str
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(installed / "gateway", bare / "gateway", ignore=lambda *_: ["built"])
    key = ApiKey.generate()
    variables = environment_of(make_settings(tmp_path, identity_database, key), "127.0.0.1:0")
    async with (
        asyncio.timeout(START_S_MAX),
        started({**variables, "PYTHONPATH": f"{bare}:{installed}"}) as process,
    ):
        port = await http_port_of(process)
        page = await HttpClient(port).request("GET", "/")
        me = HttpClient(port, {"Authorization": f"Bearer {key.reveal()}"})
        answer = await me.request("GET", "/api/v1/me")

    assert (page.status, answer.status) == (200, 200)
    assert b"The web page is not built here." in page.body
    assert b"<code>scripts/page</code> builds it" in page.body
