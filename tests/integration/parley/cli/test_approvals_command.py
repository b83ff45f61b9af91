"""`parley approvals` against a scripted gateway."""

import json
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

CHAT_ID = "00000000-0000-0000-0000-0000000000c2"
RULE: dict[str, Any] = {
    "id": "id-1",
    "scope": "user",
    "effect": "ask",
    "tool": "execute",
    "server_id": None,
    "modes": ["plan"],
    "command": "git push *",
    "arguments": {"workdir": "/a/*"},
    "reason": None,
    "rememberable": False,
    "after_outside_content": False,
    "remembered": False,
    "chat_id": None,
    "created_at": "2026-01-01T00:00:00Z",
}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("approvals", *arguments), Invocation(environment, "parley"))


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ((), "/api/v1/me/approval-rules"),
        (("--everyone",), "/api/v1/approval-rules"),
        (("--chat", CHAT_ID), f"/api/v1/chats/{CHAT_ID}/approval-rules"),
    ],
)
def test_rules_of_each_scope_are_listed_made_and_deleted(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], path: str
) -> None:
    pages = (
        Answer(200, {"items": [RULE], "next_cursor": "more"}),
        Answer(200, {"items": [RULE | {"id": "id-2", "remembered": True}], "next_cursor": None}),
    )
    with fake_api(*pages, Answer(201, RULE), Answer(204, None)) as api:
        assert parley(api, "ls", *options) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[-2:]] == ["id-1", "id-2"]
        assert "workdir=/a/*" in lines[-2]
        assert "(remembered)" in lines[-1]
        assert parley(api, "add", "deny", "*", *options) == 0
        assert parley(api, "rm", "id-1", *options) == 0
    assert capsys.readouterr().out == "id-1\nDeleted id-1.\n"
    assert [(request.method, request.path) for request in api.requests] == [
        ("GET", f"{path}?limit=200"),
        ("GET", f"{path}?limit=200&cursor=more"),
        ("POST", path),
        ("DELETE", f"{path}/id-1"),
    ]
    assert all("Idempotency-Key" in request.headers for request in api.requests[2:])


def test_a_rule_has_what_the_options_say() -> None:
    with fake_api(Answer(201, RULE)) as api:
        options = (
            *("--command", "git push *", "--argument", "workdir=/a/*", "--server", CHAT_ID),
            *("--mode", "plan", "--mode", "ordinary", "--reason", "Others see it."),
            *("--everyone", "--rememberable"),
        )
        assert parley(api, "add", "ask", "execute", *options) == 0
    assert api.requests[0].body == {
        "effect": "ask",
        "tool": "execute",
        "command": "git push *",
        "arguments": {"workdir": "/a/*"},
        "server_id": CHAT_ID,
        "modes": ["plan", "ordinary"],
        "reason": "Others see it.",
        "rememberable": True,
        "after_outside_content": False,
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--command", " "), "--command is empty: without it the rule is for every call."),
        (
            ("--argument", "path=/etc/*", "--argument", "path=/var/*"),
            "--argument path is given twice: make a rule for each.",
        ),
        (("--argument", "path"), "'path' is not NAME=PATTERN."),
    ],
)
def test_options_that_would_make_another_rule_are_refused(
    options: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api() as api:
        assert parley(api, "add", "deny", "execute", *options) == 2
    assert problem in capsys.readouterr().err
    assert api.requests == []


def test_a_program_gets_json(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(200, {"items": [RULE], "next_cursor": None})) as api:
        assert parley(api, "ls", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"items": [RULE]}


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "maybe"),
        ("add", "allow"),
        ("add", "allow", ""),
        ("add", "ask", "*", "--argument", "path"),
        ("add", "ask", "*", "--mode", "party"),
        ("ls", "--everyone", "--chat", CHAT_ID),
    ],
)
def test_a_wrong_option_asks_nothing(arguments: tuple[str, ...]) -> None:
    with fake_api() as api:
        assert parley(api, *arguments) == 2
    assert api.requests == []
