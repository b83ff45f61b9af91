"""`parley template` against a scripted gateway."""

from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

TEMPLATE: dict[str, Any] = {
    "id": "t-1",
    "name": "service",
    "kind": "git",
    "description": "Ours.",
    "ttl_ms": 7_200_000,
    "ttl_max_ms": 28_800_000,
    "is_ttl_fixed": True,
}
LIST = Answer(200, {"items": [TEMPLATE]})


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("template", *arguments), Invocation(environment, "parley"))


def test_the_lifetime_of_a_template_is_listed_fixed_and_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    free = {**TEMPLATE, "is_ttl_fixed": False, "ttl_ms": 0, "ttl_max_ms": 0}
    with fake_api(LIST, LIST, Answer(200, TEMPLATE), LIST, Answer(200, free)) as api:
        assert parley(api, "ls") == 0
        assert parley(api, "lifetime", "service", "--ttl", "120", "--fixed") == 0
        assert parley(api, "lifetime", "t-1", "--ttl", "0", "--most", "0", "--not-fixed") == 0
    shown = capsys.readouterr().out.splitlines()
    assert "120 min, at most 480 min, fixed" in shown[1]
    assert shown[2:] == ["service: 120 min, at most 480 min, fixed", "service: no end"]
    changes = [(each.path, each.body) for each in api.requests if each.method == "PATCH"]
    assert changes == [
        ("/api/v1/templates/t-1", {"ttl_ms": 7_200_000, "is_ttl_fixed": True}),
        ("/api/v1/templates/t-1", {"ttl_ms": 0, "ttl_max_ms": 0, "is_ttl_fixed": False}),
    ]


def test_a_template_that_there_is_not_and_no_change_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(LIST) as api:
        assert parley(api, "lifetime", "service") == 2
        assert parley(api, "show", "absent") == 1
    assert (
        "there is no template absent; `parley template ls` shows what there is"
        in capsys.readouterr().err
    )
