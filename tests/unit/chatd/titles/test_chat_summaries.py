"""When a chat is summarised for its people, from what, and which summaries are taken."""

from datetime import UTC, datetime

import pytest

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.parts import Part, Reasoning, Text
from chatd.content.domain.truncation import excerpt
from chatd.primitives.domain.ids import MessageId
from chatd.titles.domain.summaries import (
    MESSAGE_CHARACTERS_MAX,
    TRANSCRIPT_CHARACTERS_MAX,
    clean_summary,
    is_worth_a_summary,
    needs_summary,
    report_summary,
    summary_prompt,
    transcript_of,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)


def said(role: Role, *content: Part, visibility: Visibility = Visibility.BOTH) -> Message:
    return Message(MessageId(1), 1, role, content, "", AT, visibility)


@pytest.mark.parametrize(
    ("has_summary", "new_turns", "is_needed"),
    [(False, 0, False), (False, 1, True), (True, 2, False), (True, 3, True)],
)
def test_the_first_turn_makes_a_summary_and_then_every_third(
    has_summary: bool, new_turns: int, is_needed: bool
) -> None:
    assert needs_summary(has_summary=has_summary, new_turns=new_turns) == is_needed


def test_a_transcript_holds_what_was_said_and_nothing_else() -> None:
    messages = (
        said(Role.USER, Text("fix it")),
        said(Role.USER, Text("handover"), visibility=Visibility.MODEL),
        said(Role.ASSISTANT, Reasoning("hm"), Text("done"), Text(" ")),
        said(Role.TOOL, Text("output")),
        said(Role.ASSISTANT),
    )
    assert transcript_of(messages) == "User: fix it\n\nAssistant: done"


def test_a_transcript_keeps_the_newest_and_shortens_the_long() -> None:
    long = said(Role.USER, Text("x" * 10_000))
    transcript = transcript_of([said(Role.USER, Text("first")), *[long] * 10])
    assert "first" not in transcript
    assert len(transcript) <= TRANSCRIPT_CHARACTERS_MAX
    assert transcript.count("User: ") == TRANSCRIPT_CHARACTERS_MAX // (MESSAGE_CHARACTERS_MAX + 8)


@pytest.mark.parametrize(("length", "is_worth"), [(199, False), (200, True)])
def test_short_conversations_speak_for_themselves(length: int, is_worth: bool) -> None:
    assert is_worth_a_summary("x" * length) == is_worth


def test_a_summary_is_asked_for_by_the_transcript() -> None:
    assert summary_prompt("User: hi")[1].content == (Text("-----\nUser: hi\n-----"),)


@pytest.mark.parametrize(
    ("answer", "summary"),
    [
        ("  They wanted X.\nIt works. ", "They wanted X. It works."),
        ("One. " * 6, "One. One. One. One. One. One."),
        ("One. " * 7, None),
        ("x" * 1000, "x" * 1000),
        ("x" * 1001, None),
        (" ", None),
        ("a\0b", None),
    ],
)
def test_a_summary_is_a_few_sentences(answer: str, summary: str | None) -> None:
    assert clean_summary(answer) == summary


@pytest.mark.parametrize(
    ("report", "summary"),
    [
        ("Found **two** leaks. Fixed `a.py`.\n\nDetails follow.", "Found two leaks. Fixed a.py."),
        ("# Report\n\nBody", "Report"),
        ("```\ncode\n```\n\nAll [green](http://x).", "All green."),
        ("One. Two. Three. Four.", "One. Two. Three."),
        ("- first\n- second", "first second"),
        ("x" * 301, "x" * 299 + "…"),
        ("", ""),
        ("```\nonly code\n```", ""),
    ],
)
def test_a_report_begins_with_its_own_summary(report: str, summary: str) -> None:
    assert report_summary(report) == summary


@pytest.mark.parametrize("length", [0, 1, 5, 8, 9, 20, 99, 100, 101])
def test_an_excerpt_is_never_longer_than_asked_for(length: int) -> None:
    assert len(excerpt("x" * 100, length)) == min(length, 100)
