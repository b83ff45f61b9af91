"""`parley fallback` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

CHAT = "d54ac2ca-6657-5cfa-94f3-26d7ff2c992d"


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("fallback", *arguments), Invocation(environment, "parley"))


def test_the_fallback_model_is_shown_chosen_and_taken_away(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = [Answer(200, {"fallback_model_id": each}) for each in (None, "m", None, "n", None)]
    with fake_api(*answers) as api:
        assert parley(api, "show") == 0
        assert parley(api, "set", "m") == 0
        assert parley(api, "clear") == 0
        assert parley(api, "set", "n", "--chat", CHAT) == 0
        assert parley(api, "clear", "--chat", CHAT) == 0
    assert capsys.readouterr().out.split() == ["none", "m", "none", "n", "default"]
    assert [(each.method, each.path, each.body) for each in api.requests][1:] == [
        ("PATCH", "/api/v1/settings", {"fallback_model_id": "m"}),
        ("PATCH", "/api/v1/settings", {"fallback_model_id": None}),
        ("PATCH", f"/api/v1/chats/{CHAT}", {"fallback_model_id": "n"}),
        ("PATCH", f"/api/v1/chats/{CHAT}", {"fallback_model_id": None}),
    ]


def test_no_model_for_all_chats_is_another_command(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api() as api:
        assert parley(api, "set", "none") == 2
    assert "`parley fallback clear`" in capsys.readouterr().err
