"""What several workers do with the tests, and with what they leave behind."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.session.leftover_processes import end_leftovers
from support.session.parallel_run import SHARED, next_unit, unit_of
from support.session.second_chance import passed_alone, told

ROOT = Path(__file__).resolve().parent.parent.parent.parent
UNTIL_TOLD = [sys.executable, "-c", "import sys; sys.stdin.read()"]


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/unit/a/test_b.py::test_c", "tests/unit/a/test_b.py"),
        ("tests/unit/a/test_b.py::test_c[x::y]", "tests/unit/a/test_b.py"),
        ("tests/faults/test_b.py::test_c[d]", "tests/faults/"),
        ("tests/faults/test_e.py::test_f", "tests/faults/"),
        ("tests/e2e/test_stack.py::test_f", "tests/e2e/"),
        ("tests/e2e/own_stack/test_compose.py::test_f", "tests/e2e/own_stack/test_compose.py"),
    ],
)
def test_a_worker_takes_whole_files_and_all_that_share_a_stack(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


PAGE, OTHER, FAULTS = "tests/e2e/page/test_b.py", "tests/e2e/own_stack/test_a.py", "tests/faults/"


@pytest.mark.parametrize(
    ("waiting", "may_have_browser", "unit"),
    [
        ([OTHER, PAGE, FAULTS], True, PAGE),
        ([OTHER, PAGE, FAULTS], False, FAULTS),
        ([PAGE, OTHER], False, OTHER),
        ([OTHER, FAULTS], True, FAULTS),
        ([OTHER], True, OTHER),
        ([PAGE], False, PAGE),
    ],
)
def test_browsers_come_first_where_they_may_then_what_takes_long(
    waiting: list[str], may_have_browser: bool, unit: str
) -> None:
    assert next_unit(waiting, may_have_browser=may_have_browser) == unit


def test_half_of_the_workers_run_what_has_a_browser_while_there_are_other_tests(
    tmp_path: Path,
) -> None:
    # The other tests begin when those with a browser are over.
    os.mkfifo(tmp_path / "over")
    last = {"tests/e2e/page/test_5.py": 'open("over", "w").close()'}
    first = {"tests/integration/test_0.py": 'open("over").close()'}
    for directory, count in (("tests/e2e/page", 6), ("tests/integration", 9)):
        (tmp_path / directory).mkdir(parents=True)
        for number in range(count):
            file = f"{directory}/test_{number}.py"
            before, after = first.get(file, "pass"), last.get(file, "pass")
            tests = f"def test_a(): {before}\n\ndef test_b(): pass\n\ndef test_c(): {after}\n"
            (tmp_path / file).write_text(tests)
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "conftest"),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-n", "2", "tests"),
        ],
        env={"PYTHONPATH": str(ROOT / "tests")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    begun = re.findall(r"\[(gw\d+)\].* PASSED tests/(e2e/page|integration)", ran.stdout)
    assert (ran.returncode, len(begun)) == (0, 3 * 15), ran.stdout
    assert len({worker for worker, directory in begun if directory == "e2e/page"}) == 1


def test_what_shares_a_stack_is_there() -> None:
    assert [directory for directory in SHARED if not (ROOT / directory).is_dir()] == []


def test_what_a_killed_worker_left_is_ended_and_nothing_else(tmp_path: Path) -> None:
    mark = str(tmp_path / "popen-gw")
    with (
        subprocess.Popen(UNTIL_TOLD, stdin=subprocess.PIPE, env={"HOME": f"{mark}0"}) as left,
        subprocess.Popen(UNTIL_TOLD, stdin=subprocess.PIPE) as other,
    ):
        end_leftovers((mark,))
        assert left.poll() is not None
        assert other.poll() is None


@dataclass(frozen=True, slots=True)
class Reported:
    nodeid: str


@pytest.mark.parametrize(("allowed", "may"), [(0, "none may"), (5, "at most 5 may")])
def test_what_passes_alone_is_told_by_name_and_number(allowed: int, may: str) -> None:
    a, b, c = Reported("a"), Reported("b"), Reported("c")
    stats = {"passed": [b, a, c], "error": [c], "": [a]}
    assert passed_alone(stats) == ["a", "b"]
    assert list(told(stats, allowed)) == [
        "passed alone  a",
        "passed alone  b",
        "failed again  c",
        "1 failed again; none may",
        f"2 failed beside others and passed alone; {may}",
    ]


@pytest.mark.parametrize(
    ("allowed", "count", "exit_code"), [(0, 0, 0), (0, 1, 1), (2, 2, 0), (2, 3, 1)]
)
def test_more_that_pass_only_alone_than_allowed_fail_the_run(
    tmp_path: Path, allowed: int, count: int, exit_code: int
) -> None:
    tests = "\n".join(f"def test_{number}(): pass" for number in range(count))
    skipped = 'import pytest\n\ndef test_skipped(): pytest.skip("")\n'
    (tmp_path / "test_it.py").write_text(skipped + tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conftest"]
    ran = subprocess.run(
        [
            *command,
            "--second-chance",
            f"{allowed}",
            "-c",
            str(ROOT / "pyproject.toml"),
            str(tmp_path),
        ],
        env={"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == exit_code, ran.stdout
    assert f"{count} failed beside others and passed alone" in ran.stdout
