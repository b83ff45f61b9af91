"""The check of what a fault left finds everything that is planted."""

from pathlib import Path

import pytest

from parley.client import Message, Role, Text, ToolOutcome, ToolResult
from support.faults.history import History, Known, check_chat, counted
from support.faults.report import RowReport

COMMAND = "run: echo m >> runs; seq 1 9"
REPORT = "execute answered: {} \nThat is all the demo does. "


def said(*texts: tuple[Role, str]) -> list[Message]:
    return [
        Message(number, "c", role, (Text(text),))
        for number, (role, text) in enumerate(texts, start=1)
    ]


def checked(
    messages: list[Message], workspace: Path, *, known: Known = Known.OK, text: str = "count to 3"
) -> RowReport:
    history = History()
    history.end(history.invoke("c", "key", text), known)
    row = RowReport("A1")
    check_chat(history, "c", messages, workspace, row)
    return row


WHOLE = said((Role.USER, "count to 3"), (Role.ASSISTANT, counted(3)))


def test_a_whole_chat_has_no_problems(tmp_path: Path) -> None:
    row = checked(WHOLE, tmp_path)
    assert (row.acknowledged, row.problems) == (1, [])


def test_a_message_whose_answer_was_lost_may_be_there_or_not(tmp_path: Path) -> None:
    assert checked(WHOLE, tmp_path, known=Known.OPEN).problems == []
    assert checked([], tmp_path, known=Known.OPEN).problems == []


@pytest.mark.parametrize(
    ("messages", "known", "counts"),
    [
        ([], Known.OK, (1, 0)),
        (WHOLE, Known.FAILED, (0, 0)),
        ([*WHOLE, *WHOLE], Known.OK, (0, 2)),
        ([*WHOLE, *WHOLE], Known.OPEN, (0, 2)),
        ([*WHOLE, WHOLE[1]], Known.OK, (0, 1)),
        (WHOLE[:1], Known.OK, (0, 0)),
        (said((Role.USER, "count to 3"), (Role.ASSISTANT, "1 2 ")), Known.OK, (0, 0)),
    ],
    ids=["lost", "refused", "twice", "open_twice", "two_answers", "no_answer", "half_an_answer"],
)
def test_what_must_not_be_is_found(
    tmp_path: Path, messages: list[Message], known: Known, counts: tuple[int, int]
) -> None:
    row = checked(messages, tmp_path, known=known)
    assert row.problems != []
    assert (row.lost, row.duplicates) == counts
    assert row.bound is None


@pytest.mark.parametrize(("runs", "doubles"), [("m\n", 0), ("m\nm\n", 1), ("", 0)])
def test_a_call_that_ran_twice_or_never_is_found(tmp_path: Path, runs: str, doubles: int) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "runs").write_text(runs)
    result = ToolResult("call_0", "execute", "{}", outcome=ToolOutcome.DONE)
    messages = [
        *said((Role.USER, COMMAND), (Role.ASSISTANT, "")),
        Message(3, "c", Role.TOOL, (result,)),
        Message(4, "c", Role.ASSISTANT, (Text(REPORT),)),
    ]
    row = checked(messages, tmp_path, text=COMMAND)
    assert row.double_executions == doubles
    assert bool(row.problems) is (runs != "m\n")


def test_a_message_that_an_edit_should_have_taken_away_is_found(tmp_path: Path) -> None:
    history = History()
    history.end(history.invoke("c", "key", "count to 3"), Known.OK)
    edit = history.invoke("c", "edit", "repeat after me: x")
    history.end(edit, Known.OK)
    history.replace("c", edit)
    edited = said((Role.USER, "repeat after me: x"), (Role.ASSISTANT, "x"))
    for messages, problems in ((edited, 0), ([*WHOLE, *edited], 1)):
        row = RowReport("A1")
        check_chat(history, "c", messages, tmp_path, row)
        assert (row.acknowledged, len(row.problems)) == (1, problems)


def test_a_message_that_overtook_an_earlier_one_is_found(tmp_path: Path) -> None:
    history = History()
    for key in ("first", "second"):
        history.end(history.invoke("c", key, f"repeat after me: {key}"), Known.OK)
    row = RowReport("A1")
    swapped = said(
        (Role.USER, "repeat after me: second"),
        (Role.ASSISTANT, "second"),
        (Role.USER, "repeat after me: first"),
        (Role.ASSISTANT, "first"),
    )
    check_chat(history, "c", swapped, tmp_path, row)
    assert row.problems == ["c: 'repeat after me: second' overtook 'repeat after me: first'"]
