"""The shipped prices and limits of public models, found by the model's name.

All values are as the providers published them on the date in the book. A context window is limited
to where its price is valid: some models cost more beyond a length, and a chat is summarised before
it reaches it unless an administrator sets another limit, with its prices.
"""

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib.resources import files

import msgspec

from chatd.models.domain.price import Price
from chatd.models.domain.profile import ReasoningEffort

# Suffixes that names of one model differ by: dates, versions, tags.
_VERSION = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{6,8}|@\d{8}|-latest|-preview|-v\d+|:\w+)*")
# Prefixes that resellers add: "us.anthropic.", "anthropic/", "models/".
_SELLER = re.compile(r"^(?:.*/)?(?:(?:us|us-gov|eu|apac|jp|au|ca|global)\.)?(?:anthropic\.)?")

REMEMBERED_MAX = 1024


@dataclass(frozen=True, slots=True)
class BookEntry:
    """The data of one model; 0 and empty are unknown."""

    name: str
    price: Price
    context_limit_tokens: int = 0
    output_limit_tokens: int = 0
    max_effort: ReasoningEffort = ReasoningEffort.DEFAULT


class PriceBook:
    """Entries by name."""

    def __init__(self, dated: date, entries: tuple[BookEntry, ...]) -> None:
        self.dated = dated
        self.entries = entries
        self._found: dict[str, BookEntry | None] = {}
        # The longest first: "gpt-4o-mini" is not a version of "gpt-4o".
        self._by_length = sorted(entries, key=lambda entry: len(entry.name), reverse=True)

    def find(self, model_name: str) -> BookEntry | None:
        """Return the entry of a model, for any version or reseller in its name."""
        if model_name not in self._found:
            if len(self._found) >= REMEMBERED_MAX:
                self._found.clear()
            self._found[model_name] = self._search(model_name)
        return self._found[model_name]

    def _search(self, model_name: str) -> BookEntry | None:
        name = _SELLER.sub("", model_name.lower())
        for spelling in (name, name.replace(".", "-")):
            for entry in self._by_length:
                rest = spelling.removeprefix(entry.name)
                if spelling.startswith(entry.name) and _VERSION.fullmatch(rest):
                    return entry
        return None


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    input: str | None = None
    output: str | None = None
    cache_read: str | None = None
    cache_write: str | None = None
    context: int = 0
    longest_answer: int = 0
    max_effort: ReasoningEffort = ReasoningEffort.DEFAULT


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    dated: date
    models: list[_Line]


def shipped_book() -> PriceBook:
    """Return the book that is shipped with Parley."""
    return read_book(files("chatd.models.domain").joinpath("price_book.json").read_bytes())


def read_book(text: bytes) -> PriceBook:
    """Return the book of a JSON document.

    Raises:
        msgspec.ValidationError: It is not a valid document.
    """
    document = msgspec.json.decode(text, type=_Document)
    return PriceBook(document.dated, tuple(map(_entry, document.models)))


def _entry(line: _Line) -> BookEntry:
    price = Price(
        input=_decimal(line.input),
        output=_decimal(line.output),
        cache_read=_decimal(line.cache_read),
        cache_write=_decimal(line.cache_write),
    )
    return BookEntry(line.name, price, line.context, line.longest_answer, line.max_effort)


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
