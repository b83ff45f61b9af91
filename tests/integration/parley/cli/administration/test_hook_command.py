"""`parley hook` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

HOOK = {
    "id": "id-1",
    "name": "policy",
    "url": "https://hooks.example.com/",
    "events": ["pre_tool_use", "stop"],
    "tools": [],
    "timeout_ms": 1500,
    "fail_policy": "closed",
    "disabled": False,
    "created_at": "2026-01-01T00:00:00Z",
}
LISTED = Answer(200, {"items": [HOOK]})
DELIVERY = {
    "dispatch_id": "d",
    "chat_id": None,
    "event": "stop",
    "tool_name": None,
    "outcome": "failed",
    "http_status": 0,
    "problem": "it is down",
    "duration_ms": 3,
    "attempts": 2,
    "created_at": "2026-01-01T00:00:00Z",
}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("hook", *arguments), Invocation(environment, "parley"))


def test_a_hook_is_listed_changed_tested_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    answers = (
        LISTED,
        *(LISTED, Answer(200, HOOK)),
        *(LISTED, Answer(200, DELIVERY)),
        *(LISTED, Answer(200, {"items": [DELIVERY]})),
        *(LISTED, Answer(204, None)),
    )
    with fake_api(*answers) as api:
        assert parley(api, "ls") == 0
        assert "pre_tool_use, stop" in capsys.readouterr().out
        assert parley(api, "set", "policy", "--disabled") == 0
        assert parley(api, "test", "policy") == 1
        assert "it is down" in capsys.readouterr().out
        assert parley(api, "log", "id-1", "-n", "5") == 0
        assert parley(api, "rm", "policy") == 0
    assert [(each.method, each.path) for each in api.requests if each.path != "/api/v1/hooks"] == [
        ("PATCH", "/api/v1/hooks/id-1"),
        ("POST", "/api/v1/hooks/id-1/test"),
        ("GET", "/api/v1/hooks/id-1/deliveries?limit=5"),
        ("DELETE", "/api/v1/hooks/id-1"),
    ]


@pytest.mark.parametrize(
    ("option", "body"),
    [
        (("--fail-open",), {"fail_policy": "open"}),
        (("--fail-closed",), {"fail_policy": "closed"}),
        (("--fail-policy", "open"), {"fail_policy": "open"}),
        (("--name", "other"), {"name": "other"}),
    ],
)
def test_a_hook_is_changed_with_the_options_that_create_it(
    option: tuple[str, ...], body: dict[str, str]
) -> None:
    with fake_api(LISTED, Answer(200, HOOK)) as api:
        assert parley(api, "set", "policy", *option) == 0
    assert api.requests[1].body == body


def test_a_secret_is_rotated_with_an_overlap(capsys: pytest.CaptureFixture[str]) -> None:
    until = {**HOOK, "previous_secret_until": "2026-01-02T00:00:00Z"}
    answers = (
        *(LISTED, Answer(200, {"hook": until, "secret": "whsec_new"})),
        *(LISTED, Answer(200, {"hook": HOOK, "secret": "whsec_newer"})),
    )
    with fake_api(*answers) as api:
        assert parley(api, "rotate", "policy") == 0
        shown = capsys.readouterr().out
        assert "until 2026-01-02T00:00:00Z" in shown
        assert "whsec_new\n" in shown
        assert parley(api, "rotate", "policy", "--overlap", "0") == 0
        assert "Replaced." in capsys.readouterr().out
    asked = [each for each in api.requests if each.method == "POST"]
    assert [(each.path, each.body["overlap_s"]) for each in asked] == [
        ("/api/v1/hooks/id-1/rotate-secret", 86_400),
        ("/api/v1/hooks/id-1/rotate-secret", 0),
    ]


def test_an_unknown_hook_and_an_empty_change_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(LISTED) as api:
        assert parley(api, "rm", "other") == 1
        assert parley(api, "set", "policy") == 2
    assert "there is no hook other" in capsys.readouterr().err


def test_a_message_that_a_failing_hook_stops_is_not_sent_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    problem = {"code": "HOOK_FAILED", "title": "no", "detail": "A hook failed.", "status": 502}
    with fake_api(Answer(502, problem)) as api:
        environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
        assert run(("run", "hello"), Invocation(environment, "parley")) == 1
    assert "A hook failed." in capsys.readouterr().err
    assert [each.method for each in api.requests] == ["POST"]
