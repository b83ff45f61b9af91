"""Which titles and labels are taken, and what models are asked for them."""

import pytest

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import File, FileReference, Notice, Text
from chatd.titles.domain.labels import (
    FALLBACK_LABELS,
    LABEL_SOURCE_CHARACTERS_MAX,
    TITLE_SOURCE_CHARACTERS_MAX,
    clean_label,
    clean_title,
    label_prompt,
    title_prompt,
    title_source,
)


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Fix the login test", "Fix the login test"),
        ('  "Fix the login test."\n', "Fix the login test"),
        ("# Fix `auth.py` in v2.1", "Fix auth.py in v2.1"),
        ("**Speed of\tlight**", "Speed of light"),
        ("“Über Köln”", "Über Köln"),
        ("光の速さについて", "光の速さについて"),
        ("one two three four five six seven eight", "one two three four five six seven eight"),
        ("one two three four five six seven eight nine", None),
        ("w" * 80, "w" * 80),
        ("w" * 81, None),
        ("Title\n\nAnd an explanation", None),
        ("", None),
        ('""', None),
        ("...", None),
        ("has a \0 in it", None),
    ],
)
def test_a_title_is_one_short_line_without_decoration(answer: str, title: str | None) -> None:
    assert clean_title(answer) == title


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Tests pass now", "Tests pass now"),
        ('"Found two leaks."', "Found two leaks"),
        ("Fixed auth.py imports", "Fixed auth.py imports"),
        ("one two three four five", "one two three four five"),
        ("one two three four five six", None),
        ("Done", None),
        ("完了しました", "完了しました"),
        ("Fixed it. Now testing", None),
        ("Fixed it! Testing", None),
        ("I fixed it", None),
        ("It works now", None),
        ("The tests pass", None),
        ("We found it", None),
        ("Agent fixed it", None),
        ("Sorry, as an AI", None),
        ("Answered the user", None),
        ("two\nlines here", None),
        ("a " + "w" * 60, None),
        ("", None),
    ],
)
def test_a_label_is_a_few_words_about_what_happened(answer: str, label: str | None) -> None:
    assert clean_label(answer) == label


def test_every_fallback_keeps_the_rules_itself() -> None:
    assert [clean_label(label) for label in FALLBACK_LABELS.values()] == list(
        FALLBACK_LABELS.values()
    )


def test_a_message_that_is_only_pasted_has_a_subject() -> None:
    content = (FileReference("a.py", 1, 2, "x = 1"), File("f", "text/csv", "prices.csv"))
    assert title_source(content) == "a.py:\nx = 1\n\nFile: prices.csv"


def test_words_come_with_what_they_point_at_and_nothing_else() -> None:
    content = (Text(" why? "), Notice("from the house"), FileReference("a.py", 1, 1, "x"))
    assert title_source(content) == "why?\n\na.py:\nx"


def test_a_message_without_words_has_no_subject() -> None:
    assert title_source((File("f", "image/png"),)) == ""


def test_a_long_message_is_shortened_in_the_middle() -> None:
    source = title_source((Text("a" * 5000 + "b" * 5000),))
    assert len(source) <= TITLE_SOURCE_CHARACTERS_MAX
    assert source.startswith("a" * 100)
    assert source.endswith("b" * 100)


def test_a_title_is_asked_for_by_the_message_alone() -> None:
    system, user = title_prompt("fix it")
    assert (system.role, user.role) == (Role.SYSTEM, Role.USER)
    assert user.content == (Text("-----\nfix it\n-----"),)


def test_a_label_is_asked_for_by_the_question_and_the_end_of_the_answer() -> None:
    _, user = label_prompt("fix it", "x" * 10_000 + "fixed")
    (told,) = user.content
    assert isinstance(told, Text)
    assert "fix it" in told.text
    assert told.text.endswith("fixed\n-----")
    assert len(told.text) < 2 * LABEL_SOURCE_CHARACTERS_MAX
