from datetime import date
from decimal import Decimal

import msgspec
import pytest

from chatd.models.domain.price import Price
from chatd.models.domain.price_book import read_book, shipped_book
from chatd.models.domain.profile import ReasoningEffort

BOOK = shipped_book()


@pytest.mark.parametrize(
    ("model_name", "entry"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("gpt-4o", "gpt-4o"),
        ("GPT-4o-2024-11-20", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("openai/gpt-5.4-mini", "gpt-5.4-mini"),
        ("gpt-5.4-mini-2026-03-17", "gpt-5.4-mini"),
        ("o3-2025-04-16", "o3"),
        ("gpt-4o-audio-preview", None),
        ("gpt-4o-transcribe", None),
        ("o3-deep-research", None),
        ("claude-sonnet-99", None),
        ("gpt-50", None),
        ("llama3.3", None),
        ("", None),
    ],
)
def test_a_model_is_found_whatever_version_or_reseller_its_name_speaks_of(
    model_name: str, entry: str | None
) -> None:
    found = BOOK.find(model_name)
    assert (None if found is None else found.name) == entry


def test_the_shipped_book_is_whole_and_dated() -> None:
    assert BOOK.dated >= date(2026, 11, 1)
    names = [entry.name for entry in BOOK.entries]
    assert len(names) == len(set(names)) >= 50
    for entry in BOOK.entries:
        prices = (
            entry.price.input,
            entry.price.output,
            entry.price.cache_read,
            entry.price.cache_write,
        )
        assert all(price is None or 0 <= price < 1000 for price in prices)
        assert (entry.price.input is None) == (entry.price.output is None)
        assert entry.output_limit_tokens > 0
        assert entry.context_limit_tokens > 0


def test_every_entry_finds_itself() -> None:
    assert [BOOK.find(entry.name) for entry in BOOK.entries] == list(BOOK.entries)


def test_a_book_reads_exact_decimals() -> None:
    book = read_book(
        b'{"dated": "2026-01-02", "models": [{"name": "m", "input": "0.1", "output": "0.30",'
        b' "context": 10, "max_effort": "low"}]}'
    )
    entry = book.find("m")
    assert entry is not None
    assert (book.dated, entry.price) == (date(2026, 1, 2), Price(Decimal("0.1"), Decimal("0.30")))
    assert (entry.context_limit_tokens, entry.max_effort) == (10, ReasoningEffort.LOW)


def test_a_book_with_a_misspelt_field_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        read_book(b'{"dated": "2026-01-02", "models": [{"name": "m", "inptu": "1"}]}')
