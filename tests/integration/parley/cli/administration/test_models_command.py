"""`parley models` against a scripted gateway."""

from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

OWN = "/api/v1/me/model-overrides"
SETTINGS = "/api/v1/me/settings"
MODEL: dict[str, Any] = {
    "id": "m-1",
    "name": "big",
    "display_name": "The big one",
    "provider_display_name": "Acme",
    "is_default": True,
    "is_favourite": True,
    "is_hidden": False,
    "effective_compaction_threshold_percent": 40,
}
LIST = Answer(200, {"items": [MODEL], "next_cursor": None})


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("models", *arguments), Invocation(environment, "parley"))


def asked(api: FakeApi) -> list[tuple[str, str, Any]]:
    """Return the requests that change something."""
    return [(each.method, each.path, each.body) for each in api.requests if each.method != "GET"]


def test_own_models_are_set_shown_and_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    root = {"purpose": "root", "mode": "model", "model_id": "m-1", "reasoning_effort": "low"}
    general = {"purpose": "general", "mode": "chat_default", "model_id": None}
    answers = (
        Answer(200, root),
        Answer(200, general),
        Answer(200, {"allowed": False, "items": [root, general]}),
        Answer(204),
    )
    with fake_api(*answers) as api:
        assert parley(api, "set", "root", "big", "--effort", "low") == 0
        assert parley(api, "set", "general", "chat") == 0
        assert parley(api, "own") == 0
        assert parley(api, "clear", "root") == 0
    assert asked(api) == [
        ("PUT", f"{OWN}/root", {"mode": "model", "model_id": "big", "reasoning_effort": "low"}),
        ("PUT", f"{OWN}/general", {"mode": "chat_default"}),
        ("DELETE", f"{OWN}/root", None),
    ]
    shown = ["root: m-1, low", "general: chat default"]
    assert capsys.readouterr().out.splitlines() == [
        *shown,
        *shown,
        "Own models are switched off here, so these have no effect.",
        "root: as configured for all",
    ]


def test_models_are_listed_marked_and_have_own_thresholds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored = {
        "compaction_threshold_percents": {"m-1": 40, "m-2": 50},
        "favourite_model_ids": ["m-1"],
        "hidden_model_ids": [],
    }
    settings = Answer(200, stored)
    answers = (LIST, *(LIST, settings, settings) * 4)
    with fake_api(*answers) as api:
        assert parley(api, "ls") == 0
        assert parley(api, "threshold", "big", "90") == 0
        assert parley(api, "threshold", "big", "default") == 0
        assert parley(api, "favourite", "m-1", "--off") == 0
        assert parley(api, "hide", "m-1") == 0
    assert (
        "m-1  The big one  Acme      40 %           default, favourite" in capsys.readouterr().out
    )
    assert asked(api) == [
        ("PATCH", SETTINGS, {"compaction_threshold_percents": {"m-1": 90, "m-2": 50}}),
        ("PATCH", SETTINGS, {"compaction_threshold_percents": {"m-2": 50}}),
        ("PATCH", SETTINGS, {"favourite_model_ids": []}),
        ("PATCH", SETTINGS, {"hidden_model_ids": ["m-1"]}),
    ]


def test_an_unknown_model_and_a_wrong_percentage_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(LIST) as api:
        assert parley(api, "threshold", "big", "101") == 2
        assert parley(api, "hide", "small") == 1
    assert asked(api) == []
    assert "`parley models ls` has the ids" in capsys.readouterr().err
