"""`parley mcp resources` and `parley mcp prompts` against a scripted gateway."""

import io
import sys

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

SERVERS = Answer(200, {"items": [{"id": "id-1", "slug": "notes"}], "next_cursor": None})
PATH = "/api/v1/mcp/servers/id-1"


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("mcp", *arguments), Invocation(environment, "parley"))


def test_resources_are_listed_and_read(capsys: pytest.CaptureFixture[str]) -> None:
    memo = {"name": "memo", "title": "", "description": "A\nnote", "media_type": "text/plain"}
    listed = [
        {**memo, "uri": "memo://note", "is_template": False},
        {**memo, "uri": "memo://{id}", "is_template": True},
    ]
    read = [
        {"type": "resource", "uri": "memo://note", "text": "remember"},
        {"type": "resource", "uri": "memo://note", "data": "AA=="},
    ]
    answers = (Answer(200, {"items": listed}), SERVERS, Answer(200, {"content": read}))
    with fake_api(SERVERS, *answers) as api:
        assert parley(api, "resources", "notes") == 0
        assert parley(api, "resources", "notes", "memo://note") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["memo://note", "memo", "text/plain", "A", "note"],
        ["memo://{id}", "memo", "template", "A", "note"],
    ]
    assert lines[3:] == [
        "remember",
        '{"type": "resource", "uri": "memo://note", "data": "AA=="}',
    ]
    assert [each.path for each in api.requests if each.path.startswith(PATH)] == [
        f"{PATH}/resources",
        f"{PATH}/resources/read",
    ]


def test_prompts_are_listed_and_filled_in(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        {"name": "name", "description": "", "is_required": True},
        {"name": "tone", "description": "", "is_required": False},
    ]
    greet = {"name": "greet", "title": "", "description": "Greets", "arguments": arguments}
    filled = Answer(200, {"description": "", "text": "Hello Ann Lee"})
    with fake_api(SERVERS, Answer(200, {"items": [greet]}), SERVERS, filled, SERVERS) as api:
        assert parley(api, "prompts", "notes") == 0
        assert parley(api, "prompts", "notes", "greet", "name=Ann Lee") == 0
        assert parley(api, "prompts", "notes", "greet", "Ann") == 2
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[1].split() == ["greet", "name", "[tone]", "Greets"]
    assert lines[2:] == ["Hello Ann Lee"]
    assert "'Ann' is not ARGUMENT=VALUE" in printed.err


class Terminal(io.StringIO):
    """A terminal that keeps what is printed."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_terminal", [True, False])
def test_texts_of_servers_cannot_control_a_terminal(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    text = "before\x1b]52;c;cm0gLXJm\x07after"
    printed = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stdout", printed)
    with fake_api(SERVERS, Answer(200, {"text": text})) as api:
        assert parley(api, "prompts", "notes", "greet") == 0
    assert printed.getvalue() == ("before]52;c;cm0gLXJmafter\n" if is_terminal else f"{text}\n")
