"""`parley token` against a scripted gateway."""

import json
from pathlib import Path

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


def issue(directory: Path, *answers: Answer, options: tuple[str, ...] = ()) -> tuple[int, int]:
    """Issue a token into a file; return the exit code and how many requests there were."""
    with fake_api(*answers) as api:
        environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
        file = str(directory / "nightly.token")
        code = run((*ISSUE, "--output", file, *options), Invocation(environment, "parley"))
        return code, len(api.requests)


def test_a_token_is_written_to_a_file_that_only_its_owner_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nightly.token"
    assert issue(tmp_path, Answer(201, ISSUED)) == (0, 1)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("the-text\n", 0o600)
    printed = capsys.readouterr()
    assert printed.out == f"Wrote {file}, which only you can read.\n"
    assert printed.err == "id t-1, expires 2027-01-01T00:00:00Z\n"

    file.chmod(0o644)
    file.write_text("old")
    assert issue(tmp_path, Answer(201, ISSUED), options=("--force", "--json")) == (0, 1)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("the-text\n", 0o600)
    shown = json.loads(capsys.readouterr().out)
    assert shown == {name: value for name, value in ISSUED.items() if name != "token"}


def test_a_file_that_cannot_be_written_is_refused_before_a_token_is_issued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nightly.token"
    file.write_text("old")
    assert issue(tmp_path) == (1, 0)
    assert file.read_text() == "old"
    assert issue(tmp_path / "absent") == (1, 0)
    said = capsys.readouterr().err
    assert f"{file} exists: name another file, or give --force" in said
    assert f"there is no directory {tmp_path / 'absent'}: make it first" in said
