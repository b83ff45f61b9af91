"""`parley token` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, fake_api

ISSUED = {"id": "t-1", "token": "the-text", "expires_at": "2027-01-01T00:00:00Z"}
ISSUE = ("token", "issue", "nightly", "--scope", "chat:read", "--days", "1")
BODY = {"name": "nightly", "scopes": ["chat:read"], "lifetime_s": 86_400}


@pytest.mark.parametrize(
    ("options", "more"), [((), {}), (("--user", "id-of-bot"), {"user_id": "id-of-bot"})]
)
def test_a_token_is_issued_for_oneself_or_for_the_named_service_account(
    options: tuple[str, ...], more: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(Answer(201, ISSUED)) as api:
        environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
        assert run((*ISSUE, *options), Invocation(environment, "parley")) == 0
    assert capsys.readouterr().out == "the-text\n"
    assert [request.body for request in api.requests] == [BODY | more]
