"""Errors name the command or the option that helps, against a scripted gateway."""

import io
from pathlib import Path
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

ADA = {"id": "u-1", "login": "ada", "state": "active", "display_name": "Ada"}
ADA_FOUND = Answer(200, {"items": [ADA], "next_cursor": None})


class Terminal(io.StringIO):
    """Standard input at which somebody types."""

    def isatty(self) -> bool:
        return True


def parley(api: FakeApi, *arguments: str, home: Path | None = None) -> int:
    environment = {"HOME": str(home or "/"), "PARLEY_URL": api.server.url}
    return run(arguments, Invocation({**environment, "PARLEY_API_KEY": API_KEY}, "parley"))


def refusal(status: int, code: str) -> Answer:
    body: dict[str, Any] = {"title": code.capitalize(), "detail": "It is refused.", "code": code}
    return Answer(status, body)


def test_chats_of_others_without_an_access_name_the_command_that_opens_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(ADA_FOUND, refusal(403, "BREAK_GLASS_NEEDED")) as api:
        assert parley(api, "ls", "--owner", "ada") == 1
    printed = capsys.readouterr().err
    assert "It is refused. (BREAK_GLASS_NEEDED)" in printed
    assert "open one with `parley break-glass open ada --reason ...`" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "hi", "--no-directory", "--model", "nope"),
        ("send", "c-1", "hi", "--model", "nope"),
    ],
)
def test_a_model_that_is_not_there_names_the_list_of_models(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(refusal(404, "MODEL_NOT_FOUND")) as api:
        assert parley(api, *arguments) == 1
    assert "(MODEL_NOT_FOUND); `parley models ls` lists the models" in capsys.readouterr().err


def test_another_refusal_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(refusal(403, "FORBIDDEN")) as api:
        assert parley(api, "run", "hi", "--no-directory") == 1
    assert capsys.readouterr().err == "parley: Forbidden: It is refused. (FORBIDDEN)\n"


@pytest.mark.parametrize(
    ("rules", "hint"),
    [
        (Answer(200, {"items": [{"id": "r-1"}], "next_cursor": None}), True),
        (Answer(200, {"items": [{"id": "r-2"}], "next_cursor": None}), False),
        (refusal(403, "SCOPE_MISSING"), False),
    ],
)
def test_a_rule_of_the_installation_names_the_option_that_deletes_it(
    rules: Answer, hint: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(refusal(404, "RESOURCE_NOT_FOUND"), rules) as api:
        assert parley(api, "approvals", "rm", "r-1") == 1
    printed = capsys.readouterr().err
    named = "r-1 is a rule of the installation: delete it with `parley approvals rm r-1 --everyone`"
    assert (named in printed, "(RESOURCE_NOT_FOUND)" in printed) == (hint, not hint)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ((), "--login NAME and --password-stdin"),
        (("--login", "ada"), "--password-stdin"),
    ],
)
def test_a_sign_in_without_a_terminal_names_its_options(
    more: tuple[str, ...],
    options: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with fake_api() as api:
        assert parley(api, "login", api.server.url, *more) == 2
    assert capsys.readouterr().err == f"parley: there is no terminal to ask on: give {options}\n"
    assert api.requests == []


def test_a_deletion_without_a_terminal_names_its_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with fake_api(ADA_FOUND) as api:
        assert parley(api, "users", "delete", "ada") == 2
    assert capsys.readouterr().err == "parley: there is no terminal to ask on: give --yes\n"
    assert [request.method for request in api.requests] == ["GET"]


def test_a_deletion_is_asked_for_at_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    with fake_api(ADA_FOUND, Answer(200, ADA), Answer(204)) as api:
        assert parley(api, "users", "delete", "ada") == 0
    assert "Deleted ada" in capsys.readouterr().out
    assert [request.method for request in api.requests] == ["GET", "POST", "DELETE"]


def test_a_second_factor_without_its_code_names_the_second_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("the password\n"))
    continued = Answer(200, {"continuation": "more", "csrf_token": ""})
    with fake_api(continued) as api:
        options = ("--login", "ada", "--password-stdin")
        assert parley(api, "login", api.server.url, *options, home=tmp_path) == 2
    assert "on the second line of standard input, after the password" in capsys.readouterr().err
    assert [request.path for request in api.requests] == ["/api/v1/sign-in"]
    assert list(tmp_path.iterdir()) == []


def test_users_are_listed_with_their_ids(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(
        Answer(200, {"items": [ADA | {"role": "member", "kind": "person"}], "next_cursor": None})
    ) as api:
        assert parley(api, "users", "ls") == 0
    (columns, line) = capsys.readouterr().out.splitlines()
    assert columns.split() == ["login", "role", "state", "kind", "display_name", "id"]
    assert line.split() == ["ada", "member", "active", "person", "Ada", "u-1"]


def test_an_invitation_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api() as api:
        assert parley(api, "users", "invite", "") == 2
    assert "NAME is empty" in capsys.readouterr().err


def test_the_end_of_an_access_is_confirmed(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(204)) as api:
        assert parley(api, "break-glass", "end", "b-1") == 0
    assert capsys.readouterr().out == "The access b-1 is over.\n"
