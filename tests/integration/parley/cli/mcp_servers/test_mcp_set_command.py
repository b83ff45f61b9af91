"""`parley mcp set` against a scripted gateway."""

import io

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

SERVER = {
    "id": "id-1",
    "slug": "notes",
    "version": 7,
    "is_enabled": False,
    "group_ids": ["group-1"],
    "tool_deny_list": ["rm"],
    "limits": {"call_timeout_ms": 1000, "connect_timeout_ms": 500},
}
GROUP = "0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeee01"
SERVERS = Answer(200, {"items": [SERVER], "next_cursor": None})


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("mcp", "set", *arguments), Invocation(environment, "parley"))


def test_settings_are_changed_from_the_version_that_was_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed = {**SERVER, "version": 8, "is_enabled": True, "group_ids": ["group-2", GROUP]}
    known = {"items": [{"id": "group-2", "name": "Engineers"}], "next_cursor": None}
    with fake_api(Answer(200, known), SERVERS, Answer(200, changed)) as api:
        groups = ("--group", "engineers", "--group", GROUP)
        assert parley(api, "notes", "--enable", *groups) == 0
    request = api.requests[-1]
    assert (request.method, request.path) == ("PATCH", "/api/v1/mcp/servers/id-1")
    assert request.body == {"is_enabled": True, "group_ids": ["group-2", GROUP]}
    assert request.headers["If-Match"] == '"7"'
    assert capsys.readouterr().out.splitlines() == [
        'group_ids: ["group-1"] -> ["group-2", "' + GROUP + '"]',
        "is_enabled: false -> true",
    ]


def test_limits_are_added_to_those_that_stand_and_lists_are_emptied() -> None:
    with fake_api(SERVERS, Answer(200, SERVER)) as api:
        options = ("--limit", "call_timeout_ms=60000", "--everyone", "--deny-none", "--optional")
        assert parley(api, "notes", *options) == 0
    assert api.requests[-1].body == {
        "limits": {"call_timeout_ms": 60000, "connect_timeout_ms": 500},
        "user_ids": [],
        "group_ids": [],
        "tool_deny_list": [],
        "is_required": False,
    }


@pytest.mark.parametrize(
    ("option", "name", "error"),
    [
        ("--group", "Engineers", "no group Engineers; `parley groups ls`"),
        ("--user", "ada", "no user ada; `parley users ls`"),
    ],
)
def test_a_name_that_nobody_has_is_refused_with_the_command_that_lists_them(
    option: str, name: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {"id": GROUP, "name": "Other", "login": "other"}
    with fake_api(Answer(200, {"items": [other], "next_cursor": None})) as api:
        assert parley(api, "notes", option, name) == 1
    assert capsys.readouterr().err == f"parley: there is {error} shows what there is\n"


@pytest.mark.parametrize(
    ("auth_kind", "given", "sent"),
    [
        ("api_key", "k3y\n", {"api_key": "k3y"}),
        ("oauth2", "s3cret", {"oauth_client_secret": "s3cret"}),
        (
            "custom_headers",
            "X-Key: a:b\nX-Team: c\n",
            {"custom_headers": {"headers": {"X-Key": "a:b", "X-Team": "c"}}},
        ),
    ],
)
def test_another_host_is_given_its_credentials_from_standard_input(
    auth_kind: str, given: str, sent: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    server = {**SERVER, "auth_kind": auth_kind}
    listed = Answer(200, {"items": [server], "next_cursor": None})
    with fake_api(listed, Answer(200, server)) as api:
        url = "https://new.example/mcp"
        assert parley(api, "notes", "--url", url, "--credentials-stdin") == 0
    assert api.requests[-1].body == {"url": url, "credentials": sent}


@pytest.mark.parametrize(
    ("auth_kind", "given", "said"),
    [
        ("none", "k3y", "has no credentials"),
        ("api_key", "", "as one line"),
        ("custom_headers", "k3y", "NAME: VALUE"),
    ],
)
def test_credentials_that_do_not_fit_the_server_are_not_sent(
    auth_kind: str,
    given: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    listed = Answer(200, {"items": [{**SERVER, "auth_kind": auth_kind}], "next_cursor": None})
    with fake_api(listed) as api:
        assert parley(api, "notes", "--credentials-stdin") == 2
    error = capsys.readouterr().err
    assert said in error
    assert "k3y" not in error
    assert [each.method for each in api.requests] == ["GET"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "Name at least one change"),
        (("--everyone", "--group", GROUP), "--everyone contradicts"),
        (("--limit", "call_timeout_ms"), "is not NAME=NUMBER"),
        (("--limit", "call_timeout_ms=-5"), "with a whole number of 0 or more"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(SERVERS) as api:
        assert parley(api, "notes", *options) == 2
    assert said in capsys.readouterr().err
    assert [each.method for each in api.requests] == ["GET"]
