"""Which Python the environment is made of."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[3] / "scripts" / "setup"
#: Gives the next line of a file for each of the two; nothing at its end.
PACE = """
set -eu
pace() {
  case "$1" in /*) paces=system ;; *) paces=own ;; esac
  head -n 1 "$paces"
  sed -i 1d "$paces"
}
"""


@pytest.mark.parametrize(
    ("own_us", "system_us", "chosen"),
    [
        # Another program ran beside the first measurement, and beside all but the last.
        ([500, 100, 100, 100, 100], [120] * 5, "python3"),
        ([100] * 5, [500, 500, 500, 500, 80], "/usr/bin/python3"),
        ([100] * 5, [95] * 5, "python3"),
        ([100] * 5, [80] * 5, "/usr/bin/python3"),
        ([100] * 5, [], "python3"),
        ([], [100] * 5, "/usr/bin/python3"),
    ],
)
def test_the_faster_python_is_chosen_also_while_the_machine_is_busy(
    tmp_path: Path, own_us: Sequence[int], system_us: Sequence[int], chosen: str
) -> None:
    for name, paces_us in (("own", own_us), ("system", system_us)):
        (tmp_path / name).write_text("".join(f"{pace_us}\n" for pace_us in paces_us))
    functions = SETUP.read_text().partition("# Print the smaller")[2].partition("\nstamp=")[0]
    ran = subprocess.run(
        ["sh", "-c", f"{PACE}# {functions}\nchosen_python"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout == f"{chosen}\n"
