"""Patches: their grammar line by line, and how their chunks find their places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.fileworker.edits.diff import differences, lines_of, unified
from toolrunner.fileworker.edits.patch import patched
from toolrunner.fileworker.edits.patch_grammar import (
    AddFile,
    Chunk,
    DeleteFile,
    PatchSyntaxError,
    UpdateFile,
    parse,
)


def wrapped(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


def apply(text: str, *lines: str) -> str:
    [operation] = parse(wrapped("*** Update File: f", *lines))
    assert isinstance(operation, UpdateFile)
    result = patched(text, operation.chunks)
    assert result.bad == ()
    return result.text


def test_a_patch_says_what_is_added_deleted_changed_and_moved() -> None:
    patch = wrapped(
        "*** Add File: new/a.txt",
        "+one",
        "+",
        "*** Delete File: old.txt",
        "*** Update File: b.py",
        "*** Move to: c.py",
        "@@ class B:",
        "@@ def f():",
        " keep",
        "-go",
        "+come",
        "*** End of File",
    )
    assert parse(patch) == (
        AddFile(2, "new/a.txt", "one\n\n"),
        DeleteFile(5, "old.txt"),
        UpdateFile(
            6,
            "b.py",
            "c.py",
            (Chunk(8, ("class B:", "def f():"), ("keep", "go"), ("keep", "come"), True),),
        ),
    )


def test_a_patch_in_crlf_means_the_same() -> None:
    patch = wrapped("*** Update File: a", "@@", "-x", "+y", "", "*** Delete File: b")
    assert parse(patch.replace("\n", "\r\n")) == parse(patch)


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (("no begin",), 1),
        (("*** Begin Patch", "*** End Patch"), 2),
        (("*** Begin Patch", "*** Add File: a", "text", "*** End Patch"), 3),
        (("*** Begin Patch", "*** Add File: a", "+text"), 4),
        (("*** Begin Patch", "*** Add File:  ", "*** End Patch"), 2),
        (("*** Begin Patch", "nonsense", "*** End Patch"), 2),
        (("*** Begin Patch", "*** Update File: a", "*** End Patch"), 2),
        (("*** Begin Patch", "*** Update File: a", "@@", "*** End Patch"), 3),
        (("*** Begin Patch", "*** Update File: a", "@@", "x", "*** End Patch"), 4),
        (("*** Begin Patch", "*** Delete File: a", "*** End Patch", "more"), 4),
    ],
)
def test_a_line_that_does_not_belong_is_named(lines: tuple[str, ...], line: int) -> None:
    with pytest.raises(PatchSyntaxError) as error:
        parse("\n".join(lines))
    assert error.value.line == line


@pytest.mark.parametrize(
    ("text", "lines", "after"),
    [
        pytest.param("a\nb\nc\n", ("@@", " a", "-b", "+x"), "a\nx\nc\n", id="context"),
        pytest.param("a\nb\na\nb\n", ("@@", "-b", "+x"), "a\nx\na\nb\n", id="the first place"),
        pytest.param(
            "f:\n b\ng:\n b\n", ("@@ g:", "- b", "+ x"), "f:\n b\ng:\n x\n", id="after an anchor"
        ),
        pytest.param(
            "f:\n b\n", ("@@ f:", " f:", "- b", "+ x"), "f:\n x\n", id="an anchor said twice"
        ),
        pytest.param(
            "a\nb\na\n", ("@@", "-a", "+x", "*** End of File"), "a\nb\nx\n", id="at the end"
        ),
        pytest.param("a\nb", ("@@", "-b", "+x"), "a\nx", id="no final newline"),
        pytest.param("a\nb", ("@@", "+x"), "a\nb\nx", id="added to no final newline"),
        pytest.param("a\n", ("@@", "+x"), "a\nx\n", id="added at the end"),
        pytest.param("a\nb\n", ("@@ a", "+x"), "a\nx\nb\n", id="added after an anchor"),
        pytest.param("a\r\nb\r\n", ("@@", " a", "-b", "+x", "+y"), "a\r\nx\r\ny\r\n", id="CRLF"),
        pytest.param("a\r\nb\nc\r\n", ("@@", " b", "-c", "+x"), "a\r\nb\nx\r\n", id="mixed"),
        pytest.param("a \nb\n", ("@@", " a", "-b", "+x"), "a \nx\n", id="blanks at the end"),
        pytest.param("\ta\n\tb\n", ("@@", "   a", "-  b", "+  x"), "\ta\n\tx\n", id="indentation"),
        pytest.param("“a”\n", ("@@", '-"a"', "+b"), "b\n", id="look-alikes"),
        pytest.param(
            "a\nb\nc\nd\n", ("@@", "-a", "+x", "@@", "-d", "+y"), "x\nb\nc\ny\n", id="two chunks"
        ),
        pytest.param("a\n\nb\n", ("@@", " a", "", "-b", "+x"), "a\n\nx\n", id="a bare empty line"),
    ],
)
def test_chunks_find_their_places(text: str, lines: tuple[str, ...], after: str) -> None:
    assert apply(text, *lines) == after


def test_every_chunk_that_does_not_fit_is_told_with_its_line() -> None:
    [operation] = parse(
        wrapped("*** Update File: f", "@@ nowhere", "-a", "@@", "-zz", "+y", "@@", "-a", "+x")
    )
    assert isinstance(operation, UpdateFile)
    assert [bad.line for bad in patched("a\n", operation.chunks).bad] == [3, 5]


LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


@given(LINES, LINES)
def test_a_patch_made_of_the_differences_gives_the_new_text(old: list[str], new: list[str]) -> None:
    text, wanted = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    if text == wanted or not old:
        return
    body = [f"-{line}" for line in old] + [f"+{line}" for line in new]
    assert apply(text, "@@", *body) == wanted


@given(LINES, LINES)
def test_differences_lead_from_the_old_to_the_new(old: list[str], new: list[str]) -> None:
    made, at = [], 0
    for a_start, a_end, b_start, b_end in differences(old, new):
        made += old[at:a_start] + new[b_start:b_end]
        at = a_end
    assert made + old[at:] == new


@given(LINES, LINES)
def test_a_unified_diff_counts_its_own_lines(old: list[str], new: list[str]) -> None:
    diff = unified("f", "\n".join(old), "\n".join(new))
    body = lines_of(diff.text)[2:]
    assert sum(line.startswith("+") for line in body) == diff.added_lines
    assert sum(line.startswith("-") for line in body) == diff.deleted_lines


def test_a_unified_diff_looks_as_everywhere() -> None:
    old = "".join(f"{number}\n" for number in range(1, 21))
    new = old.replace("10\n", "ten\n").replace("20\n", "20")
    assert unified("f", old, new).text == (
        "--- a/f\n+++ b/f\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
        "@@ -17,4 +17,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n"
    )


def test_a_diff_of_everything_is_cut_and_says_so() -> None:
    old, new = ("".join(f"{word} {at}\n" for at in range(30_000)) for word in ("old", "new"))
    diff = unified("f", old, new)
    assert (diff.added_lines, diff.deleted_lines, diff.is_truncated) == (30_000, 30_000, True)
    assert len(diff.text.encode()) <= 64 * 1024
