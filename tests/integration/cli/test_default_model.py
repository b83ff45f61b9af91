"""Which model answers by default, asked of a scripted gateway."""

from pathlib import Path
from typing import Any

import pytest

from parley.cli.default_model import HOW_TO_CHOOSE, default_model_line
from parley.cli.home import Home
from parley.cli.model_providers import HOW_TO_GET_ONE
from support.fake_api import API_KEY, Answer, fake_api


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
