import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.primitives.errors import InvalidPattern
from toolrunner.processes.wait import LINE_BYTES_MAX, LineMatcher


def test_only_complete_lines_match() -> None:
    matcher = LineMatcher("ready")
    assert matcher.feed(b"starting\nrea") is None
    assert matcher.feed(b"dy now") is None
    assert matcher.feed(b"\r\nmore\n") == "ready now"


def test_the_last_line_counts_at_the_end() -> None:
    matcher = LineMatcher("^done$")
    assert matcher.feed(b"not done\ndone") is None
    assert matcher.finish() == "done"
    assert LineMatcher("x?").finish() is None


def test_escapes_and_invalid_bytes_are_no_hindrance() -> None:
    assert LineMatcher("^ok .$").feed(b"\x1b[32mok\x1b[0m \xff\n") == "ok �"


def test_of_an_endless_line_the_beginning_is_looked_at() -> None:
    matcher = LineMatcher("^begin")
    assert matcher.feed(b"begin" + b"x" * 10_000_000) is None
    matched = matcher.feed(b"y\n")
    assert matched is not None
    assert len(matched) == LINE_BYTES_MAX


@pytest.mark.parametrize("pattern", ["(", "[z-a]", r"(a)\1", "(?<=a)b"])
def test_what_is_no_expression_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern, match="RE2"):
        LineMatcher(pattern)


@given(st.lists(st.sampled_from([b"a", b"hit", b"\n", b"b c", b"\xc3"]), max_size=30))
def test_the_cuts_between_pieces_do_not_matter(pieces: list[bytes]) -> None:
    in_pieces, whole = LineMatcher("hit"), LineMatcher("hit")
    found = [line for piece in pieces if (line := in_pieces.feed(piece)) is not None]
    assert next(iter(found), None) == whole.feed(b"".join(pieces))
