"""A run of tests that never ends by itself: `tests/e2e/own_stack/test_killed_runs.py` kills it."""

import json
import os
import signal
from pathlib import Path

from support.database.postgres import TestPostgres, postgres
from support.stack.local_stack import LocalStack

__all__ = ["postgres"]

#: Names the file that the process ids are written to.
REPORT = "REPORT_OF_STACK_THAT_WAITS"


def test_a_stack_waits_for_its_end(postgres: TestPostgres, tmp_path: Path) -> None:
    stack = LocalStack.at(tmp_path / "home")
    started = stack.up("--chatd", "1")
    assert started.returncode == 0, started.stdout + started.stderr
    pids = [postgres.server.pid, *(process.pid for process in stack.everyone())]
    report = Path(os.environ[REPORT])  # noqa: TID251 (a test's own)
    whole = report.with_suffix(".part")
    whole.write_text(json.dumps({"runner": os.getpid(), "started": pids}))
    whole.rename(report)
    signal.pause()
