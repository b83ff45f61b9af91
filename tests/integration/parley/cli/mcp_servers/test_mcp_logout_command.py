"""`parley mcp logout` and `parley mcp logins` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

LOGIN = {
    "server_id": "id-1",
    "slug": "notes",
    "display_name": "Notes",
    "status": "connected",
    "is_usable": False,
}
LOGINS = Answer(200, {"items": [LOGIN]})
NO_LOGINS = Answer(200, {"items": []})
NO_SERVERS = Answer(200, {"items": [], "next_cursor": None})
REVOKED = Answer(200, {"was_connected": True, "revocation": "revoked"})


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("mcp", *arguments), Invocation(environment, "parley"))


@pytest.mark.parametrize("name", ["notes", "id-1"])
def test_a_login_is_given_up_at_a_server_that_one_may_no_longer_use(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(LOGINS, REVOKED) as api:
        assert parley(api, "logout", name) == 0
    request = api.requests[-1]
    assert (request.method, request.path) == ("DELETE", "/api/v1/mcp/servers/id-1/login")
    assert "Disconnected from notes. The server revoked the login." in capsys.readouterr().out


def test_a_server_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(NO_LOGINS, NO_SERVERS) as api:
        assert parley(api, "logout", "other") == 1
    assert "there is no MCP server other" in capsys.readouterr().err


def test_own_logins_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(LOGINS) as api:
        assert parley(api, "logins") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["notes", "id-1", "connected", "no"]
