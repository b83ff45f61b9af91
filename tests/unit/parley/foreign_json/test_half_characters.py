"""Halves of characters in JSON, beside whole ones and beside what only looks like them."""

import json

import pytest

from parley.foreign_json import without_halves


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"cut \ud83d"', r'"cut \ufffd"'),
        (r'"\ude00 late"', r'"\ufffd late"'),
        (r'"\uD83D\uDE00 whole"', r'"\uD83D\uDE00 whole"'),
        (r'"\ud83d\ud83d\ude00"', r'"\ufffd\ud83d\ude00"'),
        (r'"\\ud83d, a backslash"', r'"\\ud83d, a backslash"'),
        (r'"\\\ud83d"', r'"\\\ufffd"'),
        (r'"\n\"\ud83d\""', r'"\n\"\ufffd\""'),
        ('"no escape, 😀"', '"no escape, 😀"'),
    ],
)
def test_only_halves_are_replaced(text: str, expected: str) -> None:
    assert without_halves(text.encode()).decode() == expected
    json.loads(expected).encode()
