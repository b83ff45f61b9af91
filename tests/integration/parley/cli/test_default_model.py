"""Which model answers by default, asked of a scripted gateway."""

import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from parley.cli.chats.default_model import HOW_TO_CHOOSE, default_model_line
from parley.cli.home.layout import Home
from parley.cli.invocation import Invocation
from parley.cli.main import run
from parley.cli.stack.model_providers import HOW_TO_GET_ONE
from parley.cli.supervision.process_table import ProcessIdentity, ProcessTable, save
from support.cli.fake_api import API_KEY, Answer, fake_api


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path)
    home.api_key_file.write_text(API_KEY)
    return home


def model(id_: str, **fields: Any) -> dict[str, Any]:
    named = {"id": id_, "provider_id": "p1", "display_name": id_.title()}
    return named | {"is_default": False} | fields


DEMO = model("scripted", is_default=True)


@pytest.mark.parametrize(
    ("models", "line"),
    [
        ([DEMO], f"the scripted demo answers; {HOW_TO_GET_ONE}"),
        ([DEMO, model("big")], f"the scripted demo answers; {HOW_TO_CHOOSE}"),
        ([model("scripted"), model("big", is_default=True)], "Acme, Big by default"),
        ([model("big")], f"none is the default; {HOW_TO_CHOOSE}"),
    ],
)
def test_the_server_is_asked_which_model_is_the_default(
    home: Home, models: list[dict[str, Any]], line: str
) -> None:
    pages = [Answer(200, {"items": [each], "next_cursor": "more"}) for each in models[:-1]]
    last = Answer(200, {"items": models[-1:], "next_cursor": None})
    with fake_api(*pages, last, Answer(200, {"name": "acme", "display_name": "Acme"})) as api:
        assert default_model_line(home, api.server.url) == line


def test_a_server_that_does_not_tell_is_not_guessed_for(home: Home) -> None:
    with fake_api(Answer(503, {"title": "Down", "code": "DOWN"})) as api:
        line = default_model_line(home, api.server.url)
    assert line == "unknown, the server does not tell: Down (DOWN)"


def told_by_doctor(
    home: Home, capsys: pytest.CaptureFixture[str], **environment: str
) -> dict[str, Any]:
    assert run(["doctor", "--json"], Invocation(environment, "parley", str(home.root))) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    (found,) = [each for each in findings if each["name"] == "models"]
    return dict(found)


def test_doctor_asks_the_running_stack_for_its_default_model(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    supervisor = ProcessIdentity(os.getpid(), psutil.Process().create_time())
    stored = Answer(200, {"items": [model("big", is_default=True)], "next_cursor": None})
    with fake_api(stored, Answer(200, {"name": "acme", "display_name": "Acme"})) as api:
        save(ProcessTable(supervisor, http=api.server.url), home.processes_file)
        found = told_by_doctor(home, capsys)
    assert (found["is_there"], found["cost"]) == (True, "")
    assert found["detail"] == "Acme, Big by default; this environment names no provider"


def test_doctor_shows_that_the_demo_of_a_running_stack_answers(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    supervisor = ProcessIdentity(os.getpid(), psutil.Process().create_time())
    with fake_api(Answer(200, {"items": [DEMO], "next_cursor": None})) as api:
        save(ProcessTable(supervisor, http=api.server.url), home.processes_file)
        found = told_by_doctor(home, capsys, OPENAI_API_KEY="sk-1")
    assert not found["is_there"]
    assert found["detail"].startswith("the scripted demo answers")
    assert found["detail"].endswith("this environment names OpenAI")


def test_doctor_without_a_stack_says_only_what_the_environment_names(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    named = told_by_doctor(home, capsys, OPENAI_API_KEY="sk-1")
    assert (named["is_there"], named["detail"]) == (True, "this environment names OpenAI")
    found = told_by_doctor(home, capsys)
    assert found["detail"] == "this environment names no provider"
    assert "stored in Parley are known only while it runs" in found["cost"]
