"""`parley secret` against a scripted gateway."""

import io
import json
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, Request, fake_api

VALUE = "ghp_the-value-of-the-owner"


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("secret", *arguments), Invocation(environment, "parley"))


def secret(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"id-of-{name}",
        "name": name,
        "owner_id": None,
        "delivery": "git",
        "hosts": ["github.com:443"],
        "hint": "wner",
        "last_used_at": None,
    } | fields


def page(*items: dict[str, Any], more: str | None = None) -> Answer:
    return Answer(200, {"items": list(items), "next_cursor": more})


def calls(requests: list[Request]) -> list[tuple[str, str, Any]]:
    return [(request.method, request.path, request.body) for request in requests]


def test_a_value_is_read_from_standard_input_and_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{VALUE}\n"))
    with fake_api(Answer(200, secret("deploy"))) as api:
        assert parley(api, "put", "deploy", "--host", "github.com", "--delivery", "git") == 0
    assert capsys.readouterr() == ("Stored deploy for github.com:443.\n", "")
    [(method, path, body)] = calls(api.requests)
    assert (method, path) == ("POST", "/api/v1/secrets")
    assert body == {
        "name": "deploy",
        "value": VALUE,
        "hosts": ["github.com"],
        "delivery": "git",
        "username": "",
        "header": "",
        "description": "",
        "shared": False,
    }
    assert "Idempotency-Key" in api.requests[0].headers


def test_secrets_are_listed_page_by_page(capsys: pytest.CaptureFixture[str]) -> None:
    first = page(secret("deploy"), more="a+b")
    second = page(secret("key", delivery="environment", hosts=[], hint=""))
    with fake_api(first, second) as api:
        assert parley(api, "ls") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["name", "delivery", "hosts", "hint", "owner_id", "last_used_at"],
        ["deploy", "git", "github.com:443", "wner", "-", "-"],
        ["key", "environment", "-", "-", "-", "-"],
    ]
    paths = [request.path for request in api.requests]
    assert paths == ["/api/v1/secrets?limit=200", "/api/v1/secrets?limit=200&cursor=a%2Bb"]


def test_a_list_can_be_json(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(page(secret("deploy"))) as api:
        assert parley(api, "ls", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"items": [secret("deploy")]}


def test_a_workspace_is_granted_secrets_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    workspace = {"id": "w-1", "name": "mine"}
    with fake_api(page(workspace), page(secret("deploy")), page(workspace), page()) as api:
        assert parley(api, "grant", "mine", "deploy") == 0
        assert parley(api, "grant", "w-1") == 0
    assert capsys.readouterr().out == "mine may use deploy.\nmine may use no secrets.\n"
    path = "/api/v1/workspaces/w-1/grants"
    assert calls(api.requests)[1::2] == [
        ("PUT", path, {"secret_names": ["deploy"]}),
        ("PUT", path, {"secret_names": []}),
    ]


def test_a_secret_is_forgotten_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(page(secret("deploy")), Answer(204), page()) as api:
        assert parley(api, "rm", "deploy") == 0
        assert parley(api, "rm", "deploy") == 1
    told = capsys.readouterr()
    assert told.out == "Forgot deploy.\n"
    assert "there is no secret deploy; `parley secret ls` shows what there is" in told.err
    assert calls(api.requests)[1] == ("DELETE", "/api/v1/secrets/id-of-deploy", None)


def test_uses_are_shown_of_one_workspace(capsys: pytest.CaptureFixture[str]) -> None:
    use = {
        "used_at": "2026-01-02T03:04:05Z",
        "secret_name": "deploy",
        "host": None,
        "purpose": "process",
        "outcome": "given",
        "workspace_id": "w-1",
    }
    with fake_api(page({"id": "w-1", "name": "mine"}), page(use), page(use)) as api:
        assert parley(api, "uses", "mine", "-n", "5") == 0
        assert parley(api, "uses", "--json") == 0
    table, shown = capsys.readouterr().out.split("{", 1)
    assert [line.split() for line in table.splitlines()][1] == [
        *("2026-01-02T03:04:05Z", "deploy", "-", "process", "given", "w-1"),
    ]
    assert json.loads("{" + shown) == {"items": [use]}
    assert [request.path for request in api.requests[1:]] == [
        "/api/v1/secrets/uses?limit=5&workspace_id=w-1",
        "/api/v1/secrets/uses?limit=20",
    ]
