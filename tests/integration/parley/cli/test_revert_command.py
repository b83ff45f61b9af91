"""`parley revert` against a scripted gateway."""

import re
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

FILES = {
    "paths": [{"path": "a\x1b.txt", "action": "change", "outcome": "conflict"}],
    "omitted": 2,
    "restored": 3,
    "conflicts": 1,
    "lost": 0,
    "incomplete": True,
    "running_process_ids": ["p1"],
}
PREVIEW = {"deleted_messages": 4, "dropped_messages": 1, "files": FILES}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(arguments, Invocation(environment, "bin/parley"))


def reverted(state: str, **more: Any) -> dict[str, Any]:
    return {"id": "r1", "kind": "history", "state": state, "files": None, **more}


def test_a_revert_is_told_before_it_is_done_and_how_to_undo_it_after(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(
        Answer(200, PREVIEW),
        Answer(202, {"revert": reverted("running"), "chat": {}}),
        Answer(200, {"status": "running"}),
        Answer(200, reverted("done", files=FILES)),
    ) as api:
        assert parley(api, "revert", "c1", "3", "--files") == 0
    told = capsys.readouterr()
    assert told.out == "Reverted. Undo it with: bin/parley revert c1 --undo r1\n"
    assert told.err.splitlines()[:6] == [
        "Messages to delete: 4.",
        "Queued messages to drop: 1.",
        "Files: 3 to restore, 1 in conflict, 0 lost.",
        "  conflict   change  a.txt",
        "  and 2 more",
        "Some changes are not known any more and are not restored.",
    ]
    assert "Files: 3 restored, 1 in conflict, 0 lost." in told.err
    assert [request.path for request in api.requests] == [
        "/api/v1/chats/c1/revert/preview",
        "/api/v1/chats/c1/revert",
        "/api/v1/chats/c1",
        "/api/v1/chats/c1/reverts/r1",
    ]


def test_queued_messages_that_a_revert_dropped_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queued = {"content": [{"type": "text", "text": "and\nthen\x1b this"}]}
    answer = {"revert": reverted("done"), "chat": {}, "dropped_queued_messages": [queued]}
    with fake_api(Answer(200, PREVIEW), Answer(202, answer)) as api:
        assert parley(api, "revert", "c1", "3") == 0
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "Queued messages dropped: 1.",
        "  and then this",
    ]


def test_a_dry_run_only_tells(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(200, {"deleted_messages": 2, "dropped_messages": 0})) as api:
        assert parley(api, "revert", "c1", "3", "--dry-run") == 0
    assert capsys.readouterr().err == "Messages to delete: 2.\n"
    assert len(api.requests) == 1


def test_a_revert_that_fails_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"status": "error", "last_error": {"message": "The files could not be restored."}}
    with fake_api(
        Answer(200, PREVIEW),
        Answer(202, {"revert": reverted("running"), "chat": {}}),
        Answer(200, failed),
    ) as api:
        assert parley(api, "revert", "c1", "3", "--files") == 1
    assert "The files could not be restored." in capsys.readouterr().err


def test_an_undo_names_the_revert(capsys: pytest.CaptureFixture[str]) -> None:
    undone = reverted("done", kind="undo")
    with fake_api(Answer(202, {"revert": undone, "chat": {}})) as api:
        assert parley(api, "revert", "c1", "--undo", "r1") == 0
    assert capsys.readouterr().out == "Undone.\n"
    assert [request.path for request in api.requests] == ["/api/v1/chats/c1/reverts/r1/undo"]


def test_a_revert_that_is_no_id_is_sent_as_one_part_of_the_path() -> None:
    with fake_api(Answer(404, {"code": "REVERT_NOT_FOUND", "title": "Revert not found"})) as api:
        assert parley(api, "revert", "c1", "--undo", "../r1") == 1
    assert [request.path for request in api.requests] == ["/api/v1/chats/c1/reverts/..%2Fr1/undo"]


def test_a_message_or_a_revert_has_to_be_named() -> None:
    with fake_api() as api:
        assert parley(api, "revert", "c1") == 2
        assert parley(api, "revert", "c1", "3", "--undo", "r1") == 2


def test_reverts_are_listed_with_ids_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    done = reverted("done", message_id=3, done_at="2026-01-02T03:04:05Z", undoable=True)
    running = reverted("running", message_id=1, kind="edit")
    with fake_api(
        Answer(200, {"items": [running], "next_cursor": "more"}),
        Answer(200, {"items": [done], "next_cursor": None}),
    ) as api:
        assert parley(api, "revert", "c1", "--list") == 0
    assert [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()] == [
        ["revert", "kind", "message", "state", "done", "undoable"],
        ["r1", "edit", "1", "running", "-", "no"],
        ["r1", "history", "3", "done", "2026-01-02 03:04:05", "yes"],
    ]
    assert [request.path for request in api.requests] == [
        "/api/v1/chats/c1/reverts?limit=200",
        "/api/v1/chats/c1/reverts?limit=200&cursor=more",
    ]


@pytest.mark.parametrize("is_undone", [True, False])
def test_a_revert_that_was_undone_before_says_so(
    is_undone: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    superseded = {"code": "REVERT_SUPERSEDED", "title": "Revert superseded"}
    undo = reverted("done", kind="undo") | {"id": "r2", "undone_revert_id": "r1"}
    listed = [undo, reverted("done", undone_revert_id=None)][0 if is_undone else 1 :]
    with fake_api(Answer(409, superseded), Answer(200, {"items": listed})) as api:
        assert parley(api, "revert", "c1", "--undo", "r1") == 1
    printed = capsys.readouterr().err
    assert ("r1 was undone already" in printed) is is_undone
    assert ("REVERT_SUPERSEDED" in printed) is not is_undone
