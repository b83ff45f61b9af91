"""Running a part of a test as an ordinary user, though the tests run as root."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
WITHIN_S = 120
HERE = Path(__file__).parents[3]
PATHS = [str(HERE / name) for name in ("services", "libs", "tests")]
PRELUDE = """
import asyncio, json, os, signal, sys
sys.path[:0] = json.loads(sys.argv[1])
from pathlib import Path
from support.toolrunner import attacks
from support.toolrunner.jail import PYTHON, Jail
from toolrunner.sandbox import Layer, Level, Network, Profile
directory, arguments = Path(sys.argv[2]), sys.argv[3:]
"""

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.realpath(sys.executable).startswith("/usr/"),
    reason="needs root, to become somebody else, and a Python that everybody can run",
)


def as_ordinary_user(script: str, *arguments: str) -> Any:
    """Run a script in a directory of an ordinary user; return the JSON that it printed."""
    directory = Path(tempfile.mkdtemp(prefix="parley-nobody-"))
    try:
        os.chown(directory, NOBODY, NOBODY)
        ended = subprocess.run(
            [
                *(sys.executable, "-c", PRELUDE + script, json.dumps(PATHS)),
                *(str(directory), *arguments),
            ],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)
    finally:
        shutil.rmtree(directory)
