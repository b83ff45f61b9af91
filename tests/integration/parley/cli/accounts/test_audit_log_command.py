"""`parley audit log` against a scripted gateway."""

from pathlib import Path
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

NO_USERS = Answer(200, {"items": [], "next_cursor": None})
#: As the gateway lists what a user did who was deleted since.
ENTRY: dict[str, Any] = {
    "seq": 7,
    "at": "2026-01-02T03:04:05Z",
    "service": "gateway",
    "action": "totp.enabled",
    "outcome": "done",
    "actor_id": None,
    "subject_id": None,
    "object_id": None,
    "address": None,
    "details": {},
}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("audit", "log", *arguments), Invocation(environment, "parley"))


def test_an_actor_without_an_id_is_not_called_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(NO_USERS, Answer(200, {"items": [ENTRY], "next_cursor": None})) as api:
        assert parley(api) == 0
    _, row = capsys.readouterr().out.splitlines()
    assert row.split() == ["7", "2026-01-02T03:04:05Z", "totp.enabled", "done", "-"]


@pytest.mark.parametrize(("action", "code"), [("bogus", 1), ("user.bogus", 1), ("totp", 0)])
def test_an_action_that_there_is_not_is_refused(
    action: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(NO_USERS, NO_USERS) as api:
        assert parley(api, "--action", action) == code
    assert (f"there is no action {action}" in capsys.readouterr().err) is bool(code)


def test_an_export_replaces_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "log.jsonl"
    target.write_text("mine")
    with fake_api() as api:
        assert parley(api, "--export", str(target)) == 1
    assert "exists; choose another name" in capsys.readouterr().err
    assert target.read_text() == "mine"
