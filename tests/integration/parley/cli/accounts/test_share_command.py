"""`parley share` against a scripted gateway."""

from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

CHAT = "0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeee01"


def page(*items: dict[str, Any]) -> Answer:
    return Answer(200, {"items": list(items), "next_cursor": None})


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("share", CHAT, *arguments), Invocation(environment, "parley"))


def test_sharing_tells_what_was_changed_and_who_can_read_the_chat(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ada, eve = {"id": "u-1", "login": "ada"}, {"id": "u-2", "login": "eve"}
    before = Answer(200, {"shares": [{"user_id": "u-2", "group_id": None}]})
    after = Answer(200, {"shares": [{"user_id": "u-1", "group_id": None}]})
    none = Answer(200, {"shares": []})
    people = (page(ada), page(eve))
    with fake_api(before, *people, after, page(ada), after, page(ada), none, none) as api:
        assert parley(api, "ada", "--remove", "eve") == 0
        assert parley(api, "--remove", "ada") == 0
        assert parley(api) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "The chat is shared with ada and no longer shared with eve.",
        "Besides its owner it can be read by ada.",
        "The chat is no longer shared with ada.",
        "Besides its owner it can be read by no other user.",
    ]
    assert said.err == "The chat is not shared.\n"
