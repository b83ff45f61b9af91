"""Patterns for names against what they mean, and against what would keep them busy."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.session.examples import examples
from toolrunner.fileworker.search.globs import ALTERNATIVES_MAX, compiled, name_pattern

PLAIN = re.compile(r"\*\*/|\*\*|\*|\?")
MEANING = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def meaning(pattern: str) -> re.Pattern[str]:
    """Return the plain expression, which looks back as often as it likes."""

    def translated(found: re.Match[str]) -> str:
        if found[0] != "**/":
            return MEANING[found[0]]
        is_aligned = found.start() == 0 or pattern[found.start() - 1] == "/"
        return "(?:.*/)?" if is_aligned else ".*/"

    return re.compile(PLAIN.sub(translated, pattern), re.S)


PIECES = st.sampled_from(["a", "b", "a", "/", "*", "*", "**", "/**/", "?", "*a", "a/"])
PATTERNS = st.lists(PIECES, max_size=10).map("".join)
PATHS = st.text("ab/", max_size=12)


@given(PATTERNS, PATHS)
@settings(max_examples=examples(300))
def test_a_pattern_that_never_looks_back_matches_the_same(pattern: str, path: str) -> None:
    fits = meaning(pattern).fullmatch(path) is not None
    assert (compiled(pattern).fullmatch(path) is not None) is fits


@given(PATTERNS, PATTERNS, PATTERNS, PATHS)
@settings(max_examples=examples(200))
def test_braces_match_whatever_one_of_their_alternatives_does(
    first: str, second: str, rest: str, path: str
) -> None:
    fits = any(meaning(f"{each}b{rest}").fullmatch(path) for each in (first, second))
    assert (compiled(f"{{{first},{second}}}b{rest}").fullmatch(path) is not None) is fits


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 40 + "b",
        "**a" * 40 + "b",
        "**/*a*/" * 40 + "b",
        "*a**/" * 40 + "b",
        "*" * 400 + "b",
        "{*a,}" * 8 + "b",
    ],
)
def test_many_stars_are_done_at_once(pattern: str) -> None:
    found = name_pattern(pattern)
    before_s = time.process_time()
    for path in ("a" * 250, "a/" * 125):
        assert found.fullmatch(path) is None
    assert time.process_time() - before_s < 2


def test_braces_that_make_too_many_patterns_are_refused() -> None:
    assert compiled("{a,b}" * 8).fullmatch("abababab") is not None
    with pytest.raises(re.error, match=str(ALTERNATIVES_MAX)):
        compiled("{a,b}" * 9)


def test_a_set_matches_no_slash() -> None:
    assert compiled("a[.-0]b").fullmatch("a.b") is not None
    assert compiled("a[.-0]b").fullmatch("a/b") is None
