"""A check that passed is not run again until one of its inputs changes, and none runs for ever."""

import importlib.util
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Fails if the file contains a 2.
COMMAND = (sys.executable, "-c", "import sys; sys.exit('2' in open('input').read())")


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("checks", ROOT / "scripts" / "checks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "STAMPS", tmp_path / "stamps")
    return module


async def test_a_check_runs_again_when_its_input_changed_or_it_failed(
    checks: Any, tmp_path: Path
) -> None:
    check = checks.Check("it", COMMAND, ("input",))
    ran = []
    for text in ("1", "1", "2", "2", "3"):
        (tmp_path / "input").write_text(text)
        outcome = await checks.outcome_of(check, ["input", "other"])
        ran.append((text, outcome.status, outcome.took_s is not None))
    assert ran == [("1", 0, True), ("1", 0, False), ("2", 1, True), ("2", 1, True), ("3", 0, True)]


@pytest.mark.parametrize(("inputs", "files"), [((), ["input"]), (("input",), [])])
async def test_a_check_runs_always_where_its_inputs_are_not_known(
    checks: Any, tmp_path: Path, inputs: tuple[str, ...], files: list[str]
) -> None:
    (tmp_path / "input").write_text("1")
    check = checks.Check("it", COMMAND, inputs)
    outcomes = [await checks.outcome_of(check, files) for _ in range(2)]
    assert [(each.status, each.took_s is not None) for each in outcomes] == [(0, True)] * 2


async def test_a_check_whose_input_changed_while_it_ran_runs_again(
    checks: Any, tmp_path: Path
) -> None:
    (tmp_path / "input").write_text("2")
    fix = (sys.executable, "-c", "open('input', 'w').write('1')")
    fixing = checks.Check("it", fix, ("input",))
    assert (await checks.outcome_of(fixing, ["input"])).status == 0
    (tmp_path / "input").write_text("2")
    assert (await checks.outcome_of(fixing, ["input"])).took_s is not None


async def test_a_check_that_does_not_end_is_ended_and_fails(checks: Any) -> None:
    waiting = (sys.executable, "-c", "import signal; signal.pause()")
    outcome = await checks.outcome_of(checks.Check("it", waiting, limit_s=0.5), [])
    assert (outcome.status, outcome.output) == (
        -signal.SIGKILL,
        "It was ended because it took more than 0.5 s.",
    )
