"""Cases of a parametrised unit test run as one test, and none of them is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

TESTS = """
import asyncio
import pytest

LOOPS = []


@pytest.mark.parametrize("number", range(5))
def test_numbers(number):
    assert number not in (1, 3)


@pytest.mark.parametrize("text", ["a", "b"])
@pytest.mark.parametrize("number", [1, 2])
async def test_loops(number, text):
    loop = asyncio.get_running_loop()
    assert loop not in LOOPS
    LOOPS.append(loop)


@pytest.mark.parametrize("number", [1, 2])
def test_directories(number, tmp_path):
    assert not [*tmp_path.iterdir()]
    (tmp_path / "it").touch()


@pytest.mark.parametrize("number", [1, 2, pytest.param(3, marks=pytest.mark.skip)])
def test_marks(number):
    pass


@pytest.mark.parametrize("number", [1, 2])
def test_skipped(number):
    pytest.skip("not here")
"""


def ran(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    directory = tmp_path / "tests" / "unit"
    directory.mkdir(parents=True)
    (directory / "test_it.py").write_text(TESTS)
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conftest"),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), *arguments),
        ],
        env={"PYTHONPATH": str(ROOT / "tests")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_every_failed_case_is_reported_and_every_case_counted(tmp_path: Path, workers: str) -> None:
    found = ran(tmp_path, "-n", workers, "tests/unit")
    assert found.returncode == 1, found.stdout
    assert "_ test_numbers[1] _" in found.stdout
    assert "_ test_numbers[3] _" in found.stdout
    assert "assert 3 not in (1, 3)" in found.stdout
    assert "2 of 5 cases failed" in found.stdout
    assert "2 of 2 cases: not here" in found.stdout
    # Both with a directory, and two beside the one that is skipped by its mark.
    assert "1 failed, 5 passed, 2 skipped" in found.stdout
    assert "3 of the tests ran 11 cases" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "summary"),
    [
        (("tests/unit/test_it.py::test_numbers[3]",), "1 failed"),
        (("tests/unit/test_it.py::test_numbers[4]",), "1 passed"),
        (("tests/unit", "-k", "numbers[0]"), "1 passed"),
    ],
)
def test_one_case_can_be_selected(tmp_path: Path, arguments: tuple[str, ...], summary: str) -> None:
    assert summary in ran(tmp_path, *arguments).stdout
