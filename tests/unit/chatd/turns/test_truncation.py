"""Results that are too large."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.content.domain.truncation import (
    repaired,
    result_budget_bytes,
    truncated,
    truncated_json,
    without_large_bytes,
)


@pytest.mark.parametrize(
    ("context_limit_tokens", "budget_bytes"),
    [(0, 64 * 1024), (-1, 64 * 1024), (1000, 16 * 1024), (200_000, 199_998)],
)
def test_a_result_may_take_a_third_of_the_window(
    context_limit_tokens: int, budget_bytes: int
) -> None:
    assert result_budget_bytes(context_limit_tokens) == budget_bytes


def test_what_fits_exactly_is_left_alone() -> None:
    assert truncated("é" * 500, 1000) == "é" * 500


def test_two_thirds_are_kept_of_the_head_and_one_of_the_tail() -> None:
    cut = truncated("a" * 5000 + "b" * 5000, 256 + 900)
    assert cut == "a" * 600 + "\n[... 9100 bytes were left out here ...]\n" + "b" * 300


def test_a_tiny_budget_cuts_hard() -> None:
    assert truncated("é" * 500, 11) == "é" * 5


@given(st.text(min_size=0, max_size=2000), st.integers(0, 3000))
def test_nothing_is_larger_than_its_budget_and_no_character_is_broken(
    text: str, budget_bytes: int
) -> None:
    cut = truncated(text, budget_bytes)
    assert len(cut.encode()) <= budget_bytes or cut == text
    assert "\ufffd" not in cut or "\ufffd" in text


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=3000) | st.integers(), max_size=3)
    | st.lists(st.text(max_size=1000), max_size=5),
    st.integers(400, 2000),
)
def test_a_cut_result_is_json_within_its_budget(value: object, budget_bytes: int) -> None:
    whole = json.dumps(value, ensure_ascii=False)
    cut = truncated_json(whole, budget_bytes)
    json.loads(cut)
    assert len(cut.encode()) <= budget_bytes


def test_of_an_object_the_longest_text_is_cut() -> None:
    whole = json.dumps({"output": 'say "x"\n' * 1000, "exit_code": 1, "note": "short"})
    cut = json.loads(truncated_json(whole, 4000))
    assert (cut["exit_code"], cut["note"]) == (1, "short")
    assert "bytes were left out" in cut["output"]


def test_the_longest_text_is_cut_wherever_it_is() -> None:
    whole = {"content": [{"type": "text", "text": "a" * 9000}, {"type": "text", "text": "b" * 90}]}
    cut = json.loads(truncated_json(json.dumps(whole), 4000))
    assert "bytes were left out" in cut["content"][0]["text"]
    assert cut["content"][1] == whole["content"][1]


def test_the_bytes_of_a_picture_do_not_count_and_are_not_cut() -> None:
    picture = {"type": "image", "media_type": "image/png", "data": "x" * 9000}
    small = json.dumps({"content": [picture]})
    assert truncated_json(small, 4000) == small
    large = {"content": [picture, {"type": "text", "text": "a" * 9000}]}
    cut = json.loads(truncated_json(json.dumps(large), 4000))
    assert cut["content"][0] == picture
    assert len(cut["content"][1]["text"]) < 4000


def test_halves_of_characters_are_joined_or_replaced() -> None:
    assert repaired("\ud83d\ude00") == "😀"
    assert repaired("a\ud83d") == "a\ufffd"
    assert repaired("plain") == "plain"


def test_of_large_pictures_only_their_size_is_shown() -> None:
    picture = {"type": "image", "media_type": "image/png", "data": "A" * 400_000}
    small = {"type": "image", "media_type": "image/png", "data": "A" * 400}
    told = json.dumps({"ok": True, "content": [picture, small], "path": "p.png"})
    shown = json.loads(without_large_bytes(told))
    gone = {"type": "image", "media_type": "image/png", "data": "", "omitted_bytes": 300_000}
    assert shown == {"ok": True, "content": [gone, small], "path": "p.png"}


def test_what_only_looks_like_a_picture_is_shown() -> None:
    told = json.dumps({"output": json.dumps({"data": "A" * 400_000})})
    assert without_large_bytes(told) == told
