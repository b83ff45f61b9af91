"""Replacements: how exactly a text is found, what becomes of it, and what is said of bad ones."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolrunner.fileworker.edits.match import Match
from toolrunner.fileworker.edits.replacement import edited
from toolrunner.fileworker.values import AppliedEdit, ProblemKind, TextEdit

TWO_SPACES = "class A:\n  def f(self):\n    return 1\n\n  def g(self):\n    return 2\n"


def edit_once(text: str, old: str, new: str) -> tuple[str, Match]:
    result = edited(text, [TextEdit(old, new)])
    assert result.bad == ()
    return result.text, result.applied[0].match


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "match"),
    [
        pytest.param("a b c\n", "b", "x", "a x c\n", Match.EXACT, id="a part of a line"),
        pytest.param("a\nb\n", "a\nb", "c", "c\n", Match.EXACT, id="several lines"),
        pytest.param("a\nb\n", "a\n", "", "b\n", Match.EXACT, id="a deletion"),
        pytest.param(
            "a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n", Match.EXACT, id="LF text in a CRLF file"
        ),
        pytest.param(
            "one a\r\nb two\r\n",
            "a\nb",
            "x\ny",
            "one x\r\ny two\r\n",
            Match.TRAILING_BLANKS,
            id="LF text across lines of a CRLF file",
        ),
        pytest.param(
            "a\nb\n", "a\r\nb\r\n", "x\r\nb\r\n", "x\nb\n", Match.TRAILING_BLANKS, id="CRLF in LF"
        ),
        pytest.param(
            "a\r\nb\n", "a\r\n", "a\n", "a\nb\n", Match.EXACT, id="endings that are meant"
        ),
        pytest.param(
            "a  \nb\t\nc\n", "a\nb\n", "a\nx\n", "a  \nx\t\nc\n", Match.TRAILING_BLANKS,
            id="blanks at ends stay",
        ),
        pytest.param(
            "x\n  a\n  b", "a\nb\n", "a\nc\n", "x\n  a\n  c", Match.INDENTATION,
            id="no final newline stays none",
        ),
        pytest.param(
            TWO_SPACES,
            "    def f(self):\n        return 1\n",
            "    def f(self):\n        if self:\n            return 1\n        return 3\n",
            "class A:\n  def f(self):\n    if self:\n      return 1\n    return 3\n\n"
            "  def g(self):\n    return 2\n",
            Match.INDENTATION,
            id="indented by level",
        ),
        pytest.param(
            "if a:\n\tb()\n",
            "if a:\n    b()\n",
            "if a:\n    if c:\n        b()\n",
            "if a:\n\tif c:\n\t\tb()\n",
            Match.INDENTATION,
            id="spaces become tabs",
        ),
        pytest.param(
            "say(“hi” \u2013)\n", 'say("hi" -)\n', 'say("ho")\n', 'say("ho")\n', Match.FOLDED,
            id="look-alike punctuation",
        ),
    ],
)  # fmt: skip
def test_a_text_is_found_as_exactly_as_can_be(
    text: str, old: str, new: str, after: str, match: Match
) -> None:
    assert edit_once(text, old, new) == (after, match)


def test_a_last_line_of_blanks_fits_an_empty_one() -> None:
    assert edit_once("a\n\nb\n", "a\n  ", "c\nd\n  ")[0] == "c\nd\n\nb\n"
    assert edit_once("a\n\nb\n", "a\n  ", "c")[0] == "c\nb\n"


def test_later_edits_see_what_earlier_ones_did() -> None:
    result = edited("a\n", [TextEdit("a", "b"), TextEdit("b", "c")])
    assert result.text == "c\n"
    assert result.applied == (
        AppliedEdit(0, Match.EXACT, 1, 1),
        AppliedEdit(1, Match.EXACT, 1, 1),
    )


def test_an_ambiguous_text_is_refused_with_its_lines() -> None:
    [bad] = edited("a\nb\na\nb\n", [TextEdit("a\n", "x\n")]).bad
    assert (bad.kind, bad.count) == (ProblemKind.AMBIGUOUS, 2)
    assert "lines 1, 3" in bad.message


def test_places_that_overlap_are_ambiguous_too() -> None:
    [bad] = edited("aaa", [TextEdit("aa", "b")]).bad
    assert (bad.kind, bad.count) == (ProblemKind.AMBIGUOUS, 2)


def test_all_places_are_replaced_if_that_is_asked_for() -> None:
    result = edited("  a\nb\n a\n", [TextEdit("a\n", "c\nd\n", replace_all=True)])
    assert result.text == "  c\nd\nb\n c\nd\n"
    assert result.applied == (AppliedEdit(0, Match.EXACT, 2, 1),)


def test_an_empty_old_text_is_refused_even_for_all_places() -> None:
    [bad] = edited("a", [TextEdit("", "b", replace_all=True)]).bad
    assert bad.kind is ProblemKind.MALFORMED


def test_every_bad_edit_is_told() -> None:
    result = edited("a\na\n", [TextEdit("x", "y"), TextEdit("", "y"), TextEdit("a", "b")])
    assert [(bad.index, bad.kind) for bad in result.bad] == [
        (0, ProblemKind.NO_MATCH),
        (1, ProblemKind.MALFORMED),
        (2, ProblemKind.AMBIGUOUS),
    ]


def test_a_blank_text_is_never_found_loosely() -> None:
    [bad] = edited("a\n\nb\n", [TextEdit("   \n", "x\n")]).bad
    assert bad.kind is ProblemKind.NO_MATCH


def test_likeness_suggests_and_never_replaces() -> None:
    result = edited("def compute_total(x):\n", [TextEdit("def compute_totals(y):\n", "z\n")])
    assert result.text == "def compute_total(x):\n"
    assert result.bad[0].hints == ("line 1 is nearest: 'def compute_total(x):'",)


def test_swapped_texts_are_suspected_with_their_lines() -> None:
    [bad] = edited("one\nnew words\n", [TextEdit("old words entirely gone", "new words")]).bad
    assert "on line 2; were old and new text swapped?" in bad.hints[0]


def test_a_miscounted_character_is_named_and_nothing_else() -> None:
    text = "# ----- title\nnew\n"
    [bad] = edited(text, [TextEdit("# ------ title\n", "new\n")]).bad
    assert bad.hints == (
        "old_text has 6 times '-' (U+002D) where the file has 5, on line 1",
    )  # fmt: skip


LINES = st.lists(st.sampled_from(["a", "  b", "\tc", "", "d  "]), max_size=8)
ENDS = st.sampled_from(["\n", "\r\n"])


@given(LINES, ENDS, LINES)
def test_a_whole_line_edit_never_touches_other_lines(
    lines: list[str], end: str, new: list[str]
) -> None:
    if not lines:
        return
    text = "".join(line + end for line in [*lines, "unique line"])
    after = edited(text, [TextEdit("unique line\n", "".join(f"{line}\n" for line in new))])
    assert after.bad == ()
    assert after.text.startswith("".join(line + end for line in lines))


@given(st.text(alphabet="ab\r\n \t", max_size=40), st.text(alphabet="ab\n \t", max_size=8))
@example("a\n\r", "a\n ")
@example("a\n\nb\n", "a\n  ")
def test_a_text_replaced_by_itself_changes_nothing(text: str, old: str) -> None:
    assert edited(text, [TextEdit(old, old, replace_all=True)]).text == text
