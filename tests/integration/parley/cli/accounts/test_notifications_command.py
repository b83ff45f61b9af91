"""`parley notifications` against a scripted gateway."""

import json

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

ID = "d54ac2ca-6657-5cfa-94f3-26d7ff2c992d"
PATH = "/api/v1/me/push-subscriptions"
DEVICE = {
    "id": ID,
    "name": "laptop",
    "host": "push.example.com",
    "created_at": "2026-01-01T00:00:00Z",
    "last_sent_at": None,
    "last_error": "the push service failed (503)",
}
LISTED = Answer(200, {"push_subscriptions": [DEVICE]})


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("notifications", *arguments), Invocation(environment, "parley"))


def test_devices_are_listed_tested_and_deleted_by_name_and_id(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(LISTED, LISTED, LISTED, Answer(204), LISTED, Answer(204)) as api:
        assert parley(api, "ls") == 0
        shown = capsys.readouterr().out
        assert "laptop" in shown
        assert "the push service failed (503)" in shown
        assert parley(api, "ls", "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"push_subscriptions": [DEVICE]}
        assert parley(api, "test", "Laptop") == 0
        assert parley(api, "rm", ID[:8]) == 0
    asked = [(each.method, each.path) for each in api.requests if each.method != "GET"]
    assert asked == [("POST", f"{PATH}/{ID}/test"), ("DELETE", f"{PATH}/{ID}")]
