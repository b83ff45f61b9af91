"""Whatever kills a run of tests, nothing that its tests started is left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.host.conditions import until
from support.stack.stack_that_waits import REPORT

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
START_S_MAX = 300.0
END_S_MAX = 120.0
# As scripts/test does: the shell waits for pytest, which ends with it.
SHELL = '"$0" -m pytest --quiet -p no:cacheprovider --basetemp="$1" $2 "$3" --end-with $$; true'


@pytest.mark.parametrize(
    ("victim", "number", "workers"),
    [
        ("shell", signal.SIGKILL, "-n 2"),
        ("pytest", signal.SIGKILL, "-n 1"),
        ("pytest", signal.SIGTERM, ""),
        ("runner", signal.SIGKILL, "-n 1"),
    ],
)
def test_a_killed_run_leaves_no_process(
    tmp_path: Path, victim: str, number: signal.Signals, workers: str
) -> None:
    report = tmp_path / "report"
    environment = {**os.environ, REPORT: str(report)}  # noqa: TID251 (handed on to the child)
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]
    shell = subprocess.Popen(
        ["sh", "-c", SHELL, sys.executable, str(tmp_path / "t"), workers,
         "tests/support/stack/stack_that_waits.py"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:

        def is_started() -> bool:
            assert shell.poll() is None, "the run ended before it was killed"
            return report.exists()

        until(is_started, "a stack that waits", within_s=START_S_MAX)
        told = json.loads(report.read_text())
        family = psutil.Process(shell.pid).children(recursive=True)
        started = [psutil.Process(pid) for pid in told["started"]]
        victims = {"shell": shell.pid, "pytest": family[0].pid, "runner": told["runner"]}

        os.kill(victims[victim], number)

        if victim == "runner":
            # The run itself goes on without its worker, so only what that one started must end.
            _, left = psutil.wait_procs(started, timeout=END_S_MAX)
            assert left == []
            return
        _, left = psutil.wait_procs([*started, *family], timeout=END_S_MAX)
        assert left == []
    finally:
        if shell.poll() is None:
            for process in psutil.Process(shell.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        shell.kill()
        shell.wait()
