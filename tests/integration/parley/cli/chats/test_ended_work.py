"""Commands about work that has ended say so, against a scripted gateway."""

from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

RACE_ID = "01a1ed28-7002-755e-b3e5-40512c6ba3d1"
GOAL: dict[str, Any] = {
    "reason": "the turns are used up",
    "turns_count": 3,
    "turns_max": 3,
    "cost_micros": 0,
    "check_command": "",
    "judge_model_id": None,
    "check_output": "",
    "verdict": "",
}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(arguments, Invocation(environment, "parley"))


@pytest.mark.parametrize(("status", "said"), [("running", "cancelled"), ("done", "nothing to")])
def test_a_race_that_has_ended_is_not_called_cancelled(
    status: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    race = {"id": RACE_ID, "candidates": [{"status": "done"}, {"status": status}]}
    with fake_api(Answer(200, race), Answer(200, race)) as api:
        assert parley(api, "race", "cancel", RACE_ID) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("verb", "state", "code"),
    [
        ("pause", "paused", 0),
        ("resume", "active", 0),
        ("pause", "exhausted", 1),
        ("resume", "exhausted", 1),
        ("resume", "reached", 1),
    ],
)
def test_a_goal_that_is_over_is_neither_paused_nor_resumed(
    verb: str, state: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(Answer(200, {**GOAL, "state": state})) as api:
        assert parley(api, "goal", verb, "c-1") == code
    told = capsys.readouterr()
    assert told.out.startswith(state)
    assert (f"nothing to {verb}" in told.err) is bool(code)


def test_what_is_no_number_of_a_message_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api() as api:
        assert parley(api, "revert", "c-1", "abc") == 2
    assert "'abc' is no number of a message" in capsys.readouterr().err
