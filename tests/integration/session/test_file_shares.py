"""Every unit test is read and run by one worker."""

import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from support.session.file_shares import shares

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_every_file_is_in_one_share(count: int) -> None:
    files = [(Path(f"test_{number:02}.py"), number % 7 * 100 + 1) for number in range(80)]
    divided = shares(files, count)
    sizes = [sum(dict(files)[path] for path in share) for share in divided]
    assert len(divided) == count
    assert [*chain(*divided)] == [path for path, _ in files]
    assert max(sizes) - min(sizes) <= 2 * 601


@pytest.mark.parametrize(("workers", "files"), [("2", 4), ("2", 40), ("3", 40)])
def test_workers_run_every_test_once(tmp_path: Path, workers: str, files: int) -> None:
    for number in range(files):
        directory = tmp_path / "tests" / "unit" / f"of_{number % 3}"
        directory.mkdir(parents=True, exist_ok=True)
        text = f"def test_it(): pass\n\n\ndef test_{number}(): assert {number} != 2\n"
        (directory / f"test_{number}.py").write_text(text)
    found = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "conftest"),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)),
            *("-n", workers, "tests/unit"),
        ],
        env={"PYTHONPATH": str(ROOT / "tests")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    ran = re.findall(r"\[gw\d+\].* (?:PASSED|FAILED) (\S+)", found.stdout)
    assert found.returncode == 1, found.stdout
    assert len(ran) == len({*ran}) == 2 * files
    assert f"1 failed, {2 * files - 1} passed" in found.stdout
