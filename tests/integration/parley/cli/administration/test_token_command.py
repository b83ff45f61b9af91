"""`parley token` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, fake_api

ISSUED = {"id": "t-1", "token": "the-text", "expires_at": "2027-01-01T00:00:00Z"}
ISSUE = ("token", "issue", "nightly", "--scope", "chat:read", "--days", "1")
BODY = {"name": "nightly", "scopes": ["chat:read"], "lifetime_s": 86_400}
BOT = "019a8f5e-7c1d-7000-8000-3f6a1f0f2b11"
FOUND = Answer(200, {"items": [{"id": "other", "login": "bot2"}, {"id": BOT, "login": "bot"}]})


@pytest.mark.parametrize(
    ("options", "answers", "more"),
    [
        ((), (), {}),
        (("--user", BOT), (), {"user_id": BOT}),
        (("--user", "bot"), (FOUND,), {"user_id": BOT}),
    ],
)
def test_a_token_is_issued_for_oneself_or_for_the_named_service_account(
    options: tuple[str, ...],
    answers: tuple[Answer, ...],
    more: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(*answers, Answer(201, ISSUED)) as api:
        environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
        assert run((*ISSUE, *options), Invocation(environment, "parley")) == 0
    assert capsys.readouterr().out == "the-text\n"
    assert api.requests[-1].body == BODY | more


def test_a_token_of_an_unknown_login_is_not_issued(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(FOUND) as api:
        environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
        assert run((*ISSUE, "--user", "bo"), Invocation(environment, "parley")) == 1
    assert "there is no user bo: see `parley users ls`" in capsys.readouterr().err
