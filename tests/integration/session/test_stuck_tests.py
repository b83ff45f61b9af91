"""A test that cannot be interrupted ends with its worker, and the run goes on."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[3]
TESTS = """
import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

STARTED = Path(__file__).with_suffix(".pid")


@pytest.fixture
def wait_after():
    yield
    while True:
        pass


def test_before():
    pass


%s


def test_after():
    pass


def start():
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    STARTED.write_text(str(subprocess.Popen(command, start_new_session=True).pid))
"""
SWALLOWS = """
async def test_it():
    start()
    while True:
        try:
            await asyncio.Event().wait()
        except BaseException:
            pass
"""
NEVER_WAITS = """
async def test_it():
    start()
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
"""
STUCK_AFTER_FAILURE = """
def test_it(wait_after):
    start()
    raise AssertionError
"""
PASSES = """
def test_it():
    pass
"""
STUCK = {"swallows": SWALLOWS, "never_waits": NEVER_WAITS, "after_failure": STUCK_AFTER_FAILURE}


def run(directory: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-v", "-p", "conftest"),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(directory)),
            *("-o", f"cache_dir={directory / 'cache'}", "--basetemp", str(directory / "t")),
            *("--timeout", "4", "--end-stuck", "6", *options, str(directory)),
        ],
        env={"PYTHONPATH": str(ROOT / "tests")},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def results(output: str) -> Sequence[tuple[str, str]]:
    """Return how each test ended, in the order of their names."""
    return sorted(
        (name, result)
        for result, name in re.findall(r"\[gw\d+\].* (PASSED|FAILED|ERROR) (\S+)", output)
    )


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    for name, test in STUCK.items():
        (tmp_path / f"test_{name}.py").write_text(TESTS % test)
    return tmp_path


def test_a_test_that_cannot_be_interrupted_ends_with_its_worker_and_nothing_else(
    stuck: Path,
) -> None:
    ran = run(stuck, "-n", "2")
    crashed = re.findall(r"crashed while running '(\S+)'", ran.stdout)
    counts = Counter(result for _, result in results(ran.stdout))

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert {*crashed} == {f"test_{name}.py::test_it" for name in STUCK}
    assert (counts["PASSED"], counts["ERROR"]) == (2 * len(STUCK), 0), ran.stdout
    assert [name for name, _ in results(ran.stdout) if "test_it" not in name] == sorted(
        f"test_{name}.py::test_{when}" for name in STUCK for when in ("before", "after")
    )
    # What all threads did, with the line at which the main one was.
    assert ran.stderr.count("Timeout (0:00:06)!") == len(STUCK), ran.stderr
    left = [int(path.read_text()) for path in stuck.glob("*.pid")]
    assert len(left) == len(STUCK)
    psutil.wait_procs([psutil.Process(pid) for pid in left if psutil.pid_exists(pid)], timeout=60)
    assert [pid for pid in left if psutil.pid_exists(pid)] == []

    for name in ("after_failure", "swallows"):
        (stuck / f"test_{name}.py").write_text(TESTS % PASSES)
    alone = run(stuck, "-n", "1", "--last-failed", "--second-chance", "0")
    assert alone.returncode == 1, alone.stdout + alone.stderr
    assert alone.stdout.split(" second chance ")[1].splitlines()[1:6] == [
        "passed alone  test_after_failure.py::test_it",
        "passed alone  test_swallows.py::test_it",
        "failed again  test_never_waits.py::test_it",
        "1 failed again; none may",
        "2 failed beside others and passed alone; none may",
    ]
