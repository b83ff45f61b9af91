"""`parley api-keys` against a scripted gateway."""

import json
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

KEYS = "/api/v1/me/api-keys"
KEY: dict[str, Any] = {
    "id": "abcd1234",
    "name": "nightly",
    "scopes": ["chat:read", "chat:write"],
    "expires_at": "2027-01-01T00:00:00Z",
    "last_used_at": None,
    "revoked_at": None,
}
MADE = KEY | {"key": "pk_the-value"}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("api-keys", *arguments), Invocation(environment, "parley"))


def test_the_value_of_a_new_key_is_all_of_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scopes = ("--scope", "chat:read", "--scope", "chat:write")
    with fake_api(Answer(201, MADE), Answer(201, MADE)) as api:
        assert parley(api, "create", "nightly", *scopes, "--days", "1") == 0
        printed = capsys.readouterr()
        assert parley(api, "create", "nightly", "--json") == 0

    assert printed.out == "pk_the-value\n"
    assert printed.err == "id abcd1234, expires 2027-01-01T00:00:00Z\n"
    assert json.loads(capsys.readouterr().out) == MADE
    assert [request.body for request in api.requests] == [
        {"name": "nightly", "scopes": ["chat:read", "chat:write"], "lifetime_s": 86_400},
        {"name": "nightly", "scopes": [], "lifetime_s": 90 * 86_400},
    ]
    assert all("Idempotency-Key" in request.headers for request in api.requests)


def test_keys_are_listed_without_values_and_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    listed = Answer(200, {"items": [KEY, KEY | {"id": "own", "scopes": [], "expires_at": None}]})
    with fake_api(listed, listed, listed, Answer(200, KEY)) as api:
        assert parley(api, "ls") == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert parley(api, "ls", "--all", "--json") == 0
        assert len(json.loads(capsys.readouterr().out)["items"]) == 2
        assert parley(api, "ls", "--all") == 0
        capsys.readouterr()
        assert parley(api, "revoke", "../abcd1234") == 0

    assert lines[1:] == [
        ["abcd1234", "nightly", "chat:read,chat:write", "2027-01-01T00:00:00Z", "-", "-"],
        ["own", "nightly", "-", "-", "-", "-"],
    ]
    assert capsys.readouterr().out == "Revoked ../abcd1234.\n"
    assert [(request.method, request.path) for request in api.requests] == [
        ("GET", KEYS),
        ("GET", f"{KEYS}?include_ended=true"),
        ("GET", f"{KEYS}?include_ended=true"),
        ("DELETE", f"{KEYS}/..%2Fabcd1234"),
    ]


@pytest.mark.parametrize("days", ["0", "367"])
def test_a_lifetime_that_no_key_can_have_asks_nothing(days: str) -> None:
    with fake_api() as api:
        assert parley(api, "create", "nightly", "--days", days) == 2
    assert api.requests == []
