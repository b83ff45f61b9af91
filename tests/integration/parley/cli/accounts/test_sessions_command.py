"""`parley sessions` against a scripted gateway."""

import json
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

SESSIONS = "/api/v1/me/sessions"


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("sessions", *arguments), Invocation(environment, "parley"))


def session(session_id: str, *, is_current: bool = False) -> dict[str, Any]:
    return {
        "id": session_id,
        "method": "password",
        "address": "192.0.2.1",
        "user_agent": "A\x1b browser",
        "is_current": is_current,
        "last_seen_at": "2026-01-02T03:04:00Z",
        "expires_at": "2026-01-09T03:04:00Z",
    }


def test_sessions_are_listed_and_one_is_ended(capsys: pytest.CaptureFixture[str]) -> None:
    listed = Answer(200, {"items": [session("s-1")]})
    with fake_api(listed, listed, Answer(204)) as api:
        assert parley(api, "ls") == 0
        (_, line) = capsys.readouterr().out.splitlines()
        assert parley(api, "ls", "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"items": [session("s-1")]}
        assert parley(api, "revoke", "s-1") == 0

    assert line.split() == [
        *("s-1", "password", "192.0.2.1", "2026-01-02T03:04:00Z", "2026-01-09T03:04:00Z"),
        *("A", "browser"),
    ]
    assert capsys.readouterr().out == "Ended s-1.\n"
    assert [(request.method, request.path) for request in api.requests[2:]] == [
        ("DELETE", f"{SESSIONS}/s-1")
    ]


def test_all_other_sessions_are_ended(capsys: pytest.CaptureFixture[str]) -> None:
    listed = {"items": [session("s-1"), session("s-2", is_current=True), session("s-3")]}
    over = {"title": "Session not found", "code": "SESSION_NOT_FOUND"}
    with fake_api(Answer(200, listed), Answer(404, over), Answer(204)) as api:
        assert parley(api, "revoke", "--others") == 0

    assert capsys.readouterr().out == "Ended 2 sessions.\n"
    assert [request.path for request in api.requests] == [
        SESSIONS,
        f"{SESSIONS}/s-1",
        f"{SESSIONS}/s-3",
    ]


@pytest.mark.parametrize("arguments", [(), ("s-1", "--others")])
def test_a_session_or_all_others_have_to_be_named(arguments: tuple[str, ...]) -> None:
    with fake_api() as api:
        assert parley(api, "revoke", *arguments) == 2
    assert api.requests == []
