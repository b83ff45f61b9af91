"""`parley workspace use` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

CHAT = "d54ac2ca-6657-5cfa-94f3-26d7ff2c992d"
LIST = Answer(200, {"items": [{"id": "w-1", "name": "shop"}], "next_cursor": None})


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("workspace", "use", "--chat", CHAT, *arguments), Invocation(environment, "parley"))


def test_a_chat_is_given_a_workspace_or_its_own_files(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(LIST, Answer(200, {"id": CHAT}), Answer(200, {"id": CHAT})) as api:
        assert parley(api, "shop") == 0
        assert parley(api, "--own-files") == 0
        assert parley(api) == 2
    changes = [(each.path, each.body) for each in api.requests if each.method == "PATCH"]
    assert changes == [
        (f"/api/v1/chats/{CHAT}", {"workspace_id": "w-1"}),
        (f"/api/v1/chats/{CHAT}", {"workspace_id": None}),
    ]
    assert capsys.readouterr().out.splitlines() == [
        "The chat works in shop.",
        "The chat works in its own files.",
    ]


def test_a_workspace_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(LIST) as api:
        assert parley(api, "absent") == 1
    assert "there is no workspace absent" in capsys.readouterr().err
