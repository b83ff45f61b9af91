"""The end of a run with several workers says at which levels of the sandbox its tests ran."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

TESTS = """
import pytest

from support.session.sandbox_levels import levels_of_tests


@pytest.fixture(scope="module")
def node():
    with levels_of_tests.held("ns"):
        yield


def test_one(node): pass


def test_another(node): pytest.skip("only root")


@pytest.mark.skip(reason="this machine does not offer level landlock")
def test_third(): pass


@pytest.mark.parametrize("level", ["uid"])
def test_fourth(level): pytest.skip("no users")
"""


def test_levels_reach_the_end_of_a_run_with_workers(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"),
            *("-p", "conftest", "-c", str(ROOT / "pyproject.toml"), str(tmp_path)),
        ],
        env={"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = {line.split()[0]: line for line in ran.stdout.splitlines() if " ran" in line}
    assert ran.returncode == 0, ran.stdout
    assert lines["none"] == "none         0 ran"
    assert lines["uid"].startswith("uid          0 ran")
    assert lines["uid"].endswith(", 1 skipped: no users")
    assert lines["landlock"].endswith("1 skipped: this machine does not offer level landlock")
    assert lines["ns"].startswith("ns           1 ran")
    assert lines["ns"].endswith("1 skipped: only root")
