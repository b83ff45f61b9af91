"""`parley actions --unknown-outcomes` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(arguments, Invocation(environment, "parley"))


def test_calls_with_an_unknown_outcome_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    call = {
        "chat_id": "c1",
        "chat_title": "Release",
        "message_id": 7,
        "tool_call_id": "t1",
        "tool_name": "execute",
        "args": {"command": "make release"},
        "ended_at": "2026-11-19T06:08:19.595531Z",
        "root_chat_id": "c1",
    }
    with fake_api(Answer(200, {"items": [call]}), Answer(200, {"items": []})) as api:
        assert parley(api, "actions", "--unknown-outcomes") == 0
        rows = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
        cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
        assert parley(api, "actions", "--unknown-outcomes") == 0
    assert cells == [
        ["chat", "message", "title", "call", "since"],
        ["c1", "7", "Release", "execute: make release", "2026-11-19 06:08:19"],
    ]
    assert capsys.readouterr().err == "Of all calls it is known whether they ran.\n"
    assert [request.path for request in api.requests] == ["/api/v1/unknown-outcomes"] * 2
