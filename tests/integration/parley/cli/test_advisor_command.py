"""`parley advisor` against a scripted gateway."""

import json
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

PATH = "/api/v1/settings/advisor"
SETTINGS: dict[str, Any] = {
    "enabled": True,
    "uses_per_turn_max": 3,
    "output_tokens_max": 16384,
    "model_id": "m",
    "reasoning_effort": "high",
}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("advisor", *arguments), Invocation(environment, "parley"))


def test_it_is_shown_enabled_and_disabled(capsys: pytest.CaptureFixture[str]) -> None:
    off = SETTINGS | {"enabled": False}
    answers = [Answer(200, each) for each in (off, SETTINGS, SETTINGS, off)]
    with fake_api(*answers) as api:
        assert parley(api, "show") == 0
        assert json.loads(capsys.readouterr().out) == off
        assert parley(api, "enable", "--uses", "3", "--model", "m", "--effort", "high") == 0
        assert json.loads(capsys.readouterr().out) == SETTINGS
        assert parley(api, "disable") == 0
    assert [(request.method, request.path) for request in api.requests] == [
        ("GET", PATH),
        ("PUT", PATH),
        ("GET", PATH),
        ("PUT", PATH),
    ]
    assert api.requests[1].body == SETTINGS
    assert api.requests[3].body == off


def test_an_effort_needs_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api() as api:
        assert parley(api, "enable", "--effort", "high") == 2
    assert "--effort needs --model" in capsys.readouterr().err
    assert api.requests == []
