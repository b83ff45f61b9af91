"""`parley race` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

RACE = "0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeee01"
MODEL = "0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeee02"
CANDIDATE = {
    "position": 1,
    "chat_id": "c1",
    "model": MODEL,
    "model_id": MODEL,
    "status": "done",
    "answer": "hello",
    "error": None,
    "duration_ms": 1500,
    "cost_micros": 0,
}
FOUND = Answer(200, {"id": RACE, "check_command": "", "candidates": [CANDIDATE]})
MODELS = Answer(200, {"items": [{"id": MODEL, "name": "careful"}], "next_cursor": None})
REPORT = {"applied": True, "merged_paths": ["a"], "conflicts": [], "patches": []}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("race", *arguments), Invocation(environment, "parley"))


@pytest.mark.parametrize(("micros", "cost"), [(None, "-"), (0, "$0.0000")])
def test_a_candidate_is_shown_with_the_name_of_its_model_and_only_a_known_cost(
    micros: int | None, cost: str, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = Answer(200, {"totals": {}, "own_cost_micros": micros})
    with fake_api(FOUND, MODELS, usage, Answer(200, REPORT)) as api:
        assert parley(api, "show", RACE) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert (row[1], row[-2:]) == ("careful", [cost, "hello"])


def test_a_candidate_is_applied_by_the_name_that_is_shown() -> None:
    with fake_api(FOUND, MODELS, Answer(200, {"report": REPORT})) as api:
        assert parley(api, "apply", RACE, "careful") == 0
    assert api.requests[-1].body == {"position": 1, "strategy": "report"}
