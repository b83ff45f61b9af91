import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_reference_of_settings_is_what_the_settings_give() -> None:
    ended = subprocess.run(
        [sys.executable, ROOT / "scripts" / "configuration.py", "--check"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
