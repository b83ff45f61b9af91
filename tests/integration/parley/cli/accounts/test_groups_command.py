"""`parley groups` against a scripted gateway."""

import json
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

GROUPS = "/api/v1/groups"
GROUP: dict[str, Any] = {
    "id": "g-1",
    "name": "Engineers",
    "member_count": 1,
    "updated_at": "2026-01-02T03:04:05Z",
}
ADA = {
    "id": "u-1",
    "login": "ada",
    "role": "member",
    "state": "active",
    "kind": "person",
    "display_name": "Ada",
}
#: Names that contain the one that is searched for are found as well.
GROUP_FOUND = Answer(200, {"items": [GROUP | {"id": "g-2", "name": "Engineers 2"}, GROUP]})
ADA_FOUND = Answer(200, {"items": [ADA | {"id": "u-2", "login": "ada2"}, ADA]})


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("groups", *arguments), Invocation(environment, "parley"))


def test_a_group_is_made_listed_and_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    pages = (
        Answer(200, {"items": [GROUP], "next_cursor": "more"}),
        Answer(200, {"items": [GROUP | {"name": "Writers", "id": "g-3"}], "next_cursor": None}),
    )
    own = Answer(200, {"items": [GROUP], "next_cursor": None})
    with fake_api(Answer(201, GROUP), *pages, own, GROUP_FOUND, Answer(204)) as api:
        assert parley(api, "create", "Engineers") == 0
        assert capsys.readouterr().out == "g-1\n"
        assert parley(api, "ls") == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert parley(api, "ls", "--mine", "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"items": [GROUP]}
        assert parley(api, "rm", "engineers") == 0

    assert lines[1:] == [
        ["Engineers", "1", "2026-01-02T03:04:05Z", "g-1"],
        ["Writers", "1", "2026-01-02T03:04:05Z", "g-3"],
    ]
    assert capsys.readouterr().out == "Deleted Engineers.\n"
    assert [(request.method, request.path) for request in api.requests] == [
        ("POST", GROUPS),
        ("GET", f"{GROUPS}?limit=200"),
        ("GET", f"{GROUPS}?limit=200&cursor=more"),
        ("GET", "/api/v1/me/groups"),
        ("GET", f"{GROUPS}?q=engineers&limit=200"),
        ("DELETE", f"{GROUPS}/g-1"),
    ]


def test_members_are_named_by_their_logins(capsys: pytest.CaptureFixture[str]) -> None:
    members = Answer(200, {"items": [ADA], "next_cursor": None})
    with fake_api(
        *(GROUP_FOUND, ADA_FOUND, Answer(200, GROUP)),
        *(GROUP_FOUND, members, GROUP_FOUND, members),
        *(GROUP_FOUND, ADA_FOUND, Answer(204)),
    ) as api:
        assert parley(api, "add-member", "Engineers", "ada") == 0
        assert parley(api, "show", "Engineers") == 0
        printed = capsys.readouterr().out.splitlines()
        assert parley(api, "show", "Engineers", "--json") == 0
        assert json.loads(capsys.readouterr().out) == GROUP | {"members": [ADA]}
        assert parley(api, "remove-member", "Engineers", "ada") == 0

    assert printed[0] == "ada belongs to Engineers."
    assert printed[2].split() == ["ada", "member", "active", "person", "Ada"]
    assert capsys.readouterr().out == "ada does not belong to Engineers any more.\n"
    changes = [(each.method, each.path) for each in api.requests if each.method != "GET"]
    assert changes == [
        ("PUT", f"{GROUPS}/g-1/members/u-1"),
        ("DELETE", f"{GROUPS}/g-1/members/u-1"),
    ]


def test_a_group_or_a_user_who_is_not_there_is_named_with_the_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = Answer(200, {"items": [], "next_cursor": None})
    with fake_api(nothing, GROUP_FOUND, nothing) as api:
        assert parley(api, "show", "Nurses") == 1
        assert parley(api, "add-member", "Engineers", "eve") == 1
    assert capsys.readouterr().err.splitlines() == [
        "parley: there is no group Nurses: see `parley groups ls`",
        "parley: there is no user eve: see `parley users ls`",
    ]
