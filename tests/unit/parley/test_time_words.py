from datetime import UTC, datetime

import pytest

from parley.cli.time_words import ahead, until

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wait_s", "words"),
    [
        (-1, "now"),
        (0.2, "in 1 second"),
        (42, "in 42 seconds"),
        (91, "in 2 minutes"),
        (3 * 3600, "in 3 hours"),
        (11.5 * 86_400, "in 12 days"),
    ],
)
def test_a_wait_is_told_in_the_unit_of_its_length(wait_s: float, words: str) -> None:
    assert ahead(wait_s) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-12-01T00:00:00Z", "2026-12-01 00:00 UTC (in 12 days)"),
        ("2026-11-19T15:00:00Z", "2026-11-19 15:00 UTC (in 3 hours)"),
        ("T", "T"),
    ],
)
def test_a_time_of_the_api_is_told_with_the_wait_until_then(text: str, words: str) -> None:
    assert until(text, NOW) == words
