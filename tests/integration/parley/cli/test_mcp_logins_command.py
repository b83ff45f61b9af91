"""`parley mcp login` and `parley mcp logout` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

SERVERS = Answer(200, {"items": [{"id": "id-1", "slug": "linear"}], "next_cursor": None})
LOGIN = {
    "server_id": "id-1",
    "slug": "linear",
    "display_name": "Linear",
    "status": "connected",
    "is_usable": True,
}
PATH = "/api/v1/mcp/servers/id-1/login"


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("mcp", *arguments), Invocation(environment, "parley"))


def test_a_login_is_waited_for_and_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    states = [Answer(200, {"status": each}) for each in ("not_connected", "connected")]
    given_up = Answer(200, {"was_connected": True, "revocation": "not_supported"})
    nothing = Answer(200, {"was_connected": False, "revocation": "not_needed"})
    logins = Answer(200, {"items": [LOGIN]})
    no_logins = Answer(200, {"items": []})
    answers = (SERVERS, *states, logins, given_up, no_logins, SERVERS, nothing)
    with fake_api(*answers) as api:
        assert parley(api, "login", "linear", "--no-browser", "--wait", "0.2") == 0
        assert parley(api, "logout", "linear") == 0
        assert parley(api, "logout", "linear") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Open this address in a browser in which you are signed in as the same user:",
        f"  {api.server.url}/mcp/login/id-1",
        "You are connected to linear.",
        "Disconnected from linear. The server cannot revoke logins; the login there ends when it "
        "expires.",
        "You were not connected to linear.",
    ]
    assert [(each.method, each.path) for each in api.requests if each.path == PATH] == [
        ("GET", PATH),
        ("GET", PATH),
        ("DELETE", PATH),
        ("DELETE", PATH),
    ]


def test_a_login_that_nobody_makes_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = [Answer(200, {"status": "needs_reconnect"})] * 2
    with fake_api(SERVERS, *waiting) as api:
        assert parley(api, "login", "linear", "--no-browser", "--wait", "0.1") == 1
    assert "nobody logged in at linear within 0.1 s" in capsys.readouterr().err
