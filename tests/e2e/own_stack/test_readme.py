"""Every example of the README, run as a newcomer would, in a home of their own."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.host.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
HTTP_DEFAULT = "127.0.0.1:8787"
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
# Those two are what runs this test, and what it starts in the background itself.
LEFT_OUT = ("make run\n", "make test\n")
EXIT_OF_CURL_CUT = 28
PROVIDER_DEFAULT = "127.0.0.1:11434"
(PROVIDER_EXAMPLE,) = re.findall(
    r"```sh\n(.*?)```", (ROOT / "docs" / "provider-keys.md").read_text(), re.DOTALL
)

pytestmark = pytest.mark.slow


def shell(script: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}  # noqa: TID251 (for a child)
    return subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def http() -> str:
    """Give an address of our own: a newcomer may be running Parley on the default one."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, http: str) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("h")
    started = shell(f".venv/bin/parley up --detach --chatd 2 --http {http}", home)
    assert started.returncode == 0, started.stdout + started.stderr
    yield home
    shell(".venv/bin/parley down", home)


def test_the_two_commands_are_there() -> None:
    assert set(LEFT_OUT) <= set(BLOCKS)


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block not in LEFT_OUT], ids=lambda block: block[:40]
)
def test_an_example_runs(block: str, home: Path, http: str) -> None:
    done = shell(block.replace(HTTP_DEFAULT, http), home)
    expected = {0, EXIT_OF_CURL_CUT} if "curl" in block else {0}
    assert done.returncode in expected, done.stdout + done.stderr
    assert done.stdout


def test_the_example_of_a_provider_runs(home: Path, http: str) -> None:
    port = free_port()
    mock = subprocess.Popen(
        [".venv/bin/parley", "llm-mock", "--port", str(port)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert mock.stdout is not None
    try:
        # It prints its addresses when it serves.
        assert mock.stdout.readline()
        own = PROVIDER_EXAMPLE.replace(HTTP_DEFAULT, http)
        done = shell(own.replace(PROVIDER_DEFAULT, f"127.0.0.1:{port}"), home)
    finally:
        mock.terminate()
        mock.wait()
        mock.stdout.close()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("hello\n")
