from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.processes.output.excerpt import Budget, Excerpt, Truncation, complete_bytes, excerpt

DEFAULT = Budget()


@dataclass(frozen=True)
class Kept:
    """Output in memory, of which only some spans can still be read."""

    data: bytes
    spans: tuple[tuple[int, int], ...]

    def read(self, start: int, end: int) -> bytes:
        return self.data[start:end]


def kept(data: bytes) -> Kept:
    return Kept(data, ((0, len(data)),))


def shown(data: bytes, budget: Budget = DEFAULT) -> Excerpt:
    return excerpt(kept(data), 0, len(data), budget)


def test_what_fits_is_returned_as_it_is() -> None:
    assert shown(b"one\ntwo\n") == Excerpt("one\ntwo\n", 8, None)


def test_nothing_is_an_empty_text() -> None:
    assert shown(b"") == Excerpt("", 0, None)


def test_a_budget_that_is_just_met_leaves_nothing_out() -> None:
    data = b"x" * 99 + b"\n"
    assert shown(data, Budget(max_bytes=100)) == Excerpt(data.decode(), 100, None)


def test_what_is_longer_than_the_head_but_fits_is_not_touched() -> None:
    data = "".join(f"{number} grün\n" for number in range(2000)).encode()
    assert 20_000 < len(data) < 32 * 1024
    assert shown(data) == Excerpt(data.decode(), len(data), None)


def test_one_long_line_that_fits_is_not_touched() -> None:
    data = "é".encode() * 10_000
    assert shown(data) == Excerpt(data.decode(), 20_000, None)


def test_long_lines_of_what_does_not_fit_lose_their_middles_first() -> None:
    # Each of these bytes takes three in the text.
    data = b"\xff" * 12_000 + b"\nFAILED"
    found = shown(data)
    assert found.truncation is not None
    assert (found.truncation.omitted_bytes, found.truncation.clipped_lines) == (0, 1)
    assert found.text.endswith("\nFAILED")


def test_the_tail_is_really_kept() -> None:
    data = b"".join(b"line %04d\n" % number for number in range(1000)) + b"FAILED 3 tests"
    found = shown(data, Budget(max_bytes=400))
    assert found.text == (
        "".join(f"line {number:04}\n" for number in range(15))
        + "\n[... 9670 bytes in 967 lines left out ...]\n"
        + "".join(f"line {number:04}\n" for number in range(982, 1000))
        + "FAILED 3 tests"
    )
    assert len(found.text.encode()) <= 400
    assert found.truncation == Truncation(
        original_bytes=10014,
        retained_bytes=344,
        omitted_bytes=9670,
        omitted_lines=967,
        clipped_lines=0,
        clipped_bytes=0,
        expired_bytes=0,
    )


def test_the_head_can_be_asked_for() -> None:
    found = shown(b"a" * 500 + b"z" * 500, Budget(max_bytes=200, head_bytes=10))
    assert found.text.startswith("a" * 10 + "\n[... ")
    assert found.text.endswith("z" * 140)


def test_a_budget_too_small_for_a_mark_gives_the_end() -> None:
    assert shown(b"a" * 50 + b"the end", Budget(max_bytes=7)).text == "the end"


def test_invalid_bytes_are_replaced() -> None:
    assert shown(b"caf\xe9 \xff\n").text == "caf� �\n"


def test_text_that_grows_by_replacement_still_fits() -> None:
    found = shown(b"\xff" * 1000, Budget(max_bytes=600))
    assert len(found.text.encode()) <= 600
    assert found.truncation is not None
    assert found.truncation.retained_bytes + found.truncation.omitted_bytes == 1000


def test_characters_are_never_cut() -> None:
    found = shown("äöü€😀".encode() * 200, Budget(max_bytes=301))
    assert "�" not in found.text


def test_escape_sequences_are_removed_unless_they_are_asked_for() -> None:
    data = b"\x1b[31mred\x1b[0m \x1b]0;title\x07done"
    assert shown(data).text == "red done"
    assert shown(data, Budget(keeps_escapes=True)).text == data.decode()


def test_a_long_line_loses_its_middle_and_that_is_counted() -> None:
    found = shown(b"begin" + b"." * 100 + b"end\nnext", Budget(line_bytes=10))
    assert found == Excerpt(
        "begin[... 98 bytes ...]..end\nnext",
        113,
        Truncation(
            original_bytes=113,
            retained_bytes=15,
            omitted_bytes=0,
            omitted_lines=0,
            clipped_lines=1,
            clipped_bytes=98,
            expired_bytes=0,
        ),
    )


def test_what_the_log_no_longer_has_is_told_apart_from_what_is_left_out() -> None:
    data = b"h" * 100 + b"?" * 700 + b"t" * 200
    source = Kept(data, ((0, 100), (800, 1000)))
    found = excerpt(source, 0, 1000, Budget(max_bytes=200))
    assert found.truncation is not None
    assert found.truncation.expired_bytes == 700
    assert found.truncation.retained_bytes + found.truncation.omitted_bytes == 300
    assert "?" not in found.text


def test_a_cursor_gives_only_what_follows() -> None:
    assert excerpt(kept(b"seen new"), 5, 8, Budget()) == Excerpt("new", 8, None)


@pytest.mark.parametrize(
    ("data", "complete"),
    [
        (b"", 0),
        (b"abc", 3),
        ("é".encode(), 2),
        ("é".encode()[:1], 0),
        ("a€".encode()[:-1], 1),
        ("a😀".encode()[:-1], 1),
        ("a😀".encode()[:-3], 1),
        (b"a\xff", 2),
        (b"\x80\x80\x80\x80", 4),
    ],
)
def test_a_character_that_has_only_begun_is_held_back(data: bytes, complete: int) -> None:
    assert complete_bytes(data) == complete


@given(st.binary(max_size=3000), st.integers(1, 700), st.integers(1, 100))
def test_every_output_fits_its_budget_and_its_bytes_add_up(
    data: bytes, max_bytes: int, line_bytes: int
) -> None:
    found = shown(data, Budget(max_bytes=max_bytes, line_bytes=line_bytes))
    assert len(found.text.encode()) <= max_bytes
    if (left_out := found.truncation) is not None:
        assert (
            left_out.original_bytes
            == len(data)
            == sum(
                (
                    left_out.retained_bytes,
                    left_out.omitted_bytes,
                    left_out.clipped_bytes,
                    left_out.expired_bytes,
                )
            )
        )


@given(st.text(max_size=2000), st.integers(60, 700))
def test_valid_text_is_never_damaged(text: str, max_bytes: int) -> None:
    data = text.encode("utf-8", "replace")
    found = shown(data, Budget(max_bytes=max_bytes, line_bytes=100_000, keeps_escapes=True))
    assert found.text.count("�") <= data.decode().count("�")
