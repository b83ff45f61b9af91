"""`parley mcp workspace` against a scripted gateway."""

import os
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

CHAT = "01890000-0000-7000-8000-000000000001"
SERVER: dict[str, Any] = {
    "name": "notes",
    "state": "untrusted",
    "reason": None,
    "command": "node",
    "arguments": ["a file.js", "-x"],
    "variable_names": ["NODE_OPTIONS"],
    "environment": {"NODE_OPTIONS": "--require ./other.js"},
    "digest": "0123",
    "tool_names": [],
}
LISTED = Answer(200, {"servers": [SERVER], "problem": None})
TRUSTED = Answer(200, SERVER | {"state": "trusted"})
SHOWN = "notes: NODE_OPTIONS='--require ./other.js' node 'a file.js' -x"


def trust(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    command = ("mcp", "workspace", "trust", CHAT, "notes", *arguments)
    return run(command, Invocation(environment, "parley"))


def test_trust_shows_all_that_decides_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(LISTED, TRUSTED) as api:
        assert trust(api) == 0
    assert SHOWN in capsys.readouterr().err
    assert api.requests[1].body == {"digest": "0123"}


@pytest.mark.parametrize(("typed", "requests"), [(b"n\n", 1), (b"y\n", 2)])
def test_trust_asks_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: bytes,
    requests: int,
) -> None:
    screen, terminal = os.openpty()
    os.write(screen, typed)
    with os.fdopen(terminal) as stdin, fake_api(LISTED, TRUSTED) as api:
        monkeypatch.setattr("sys.stdin", stdin)
        assert (trust(api) == 0) == (requests == 2)
        assert "Trust it?" in capsys.readouterr().err
        assert len(api.requests) == requests
    os.close(screen)


def test_a_digest_answers_the_question() -> None:
    with fake_api(TRUSTED) as api:
        assert trust(api, "--digest", "0123") == 0
    assert api.requests[0].body == {"digest": "0123"}
