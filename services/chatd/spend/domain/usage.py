"""Totals of usage and cost."""

from dataclasses import dataclass
from datetime import datetime

from chatd.primitives.domain.ids import ChatId, OwnerId


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """Totals over model calls; a call without a price counts as unpriced and costs nothing."""

    cost_micros: int = 0
    priced_calls: int = 0
    unpriced_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    model_runtime_ms: int = 0
    estimated_calls: int = 0
    estimated_cost_micros: int = 0  # Part of the cost.
    fallback_calls: int = 0


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The totals of one user, model or chat tree; names are empty where there are none."""

    id: str
    name: str
    totals: UsageTotals
    provider_name: str = ""  # Only of a model.


@dataclass(frozen=True, slots=True)
class TreeUsage:
    """The totals of a chat tree, and the cost of the chat alone that was asked for.

    Attributes:
        own_cost_micros: None if none of its calls has a known price.
    """

    root_chat_id: ChatId
    totals: UsageTotals
    own_cost_micros: int | None


@dataclass(frozen=True, slots=True)
class UsageSpan:
    """A time range: start inclusive, end exclusive."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class UsageReader:
    """The user who asks: they see their own usage, or that of all users with `may_read_all`."""

    id: OwnerId
    may_read_all: bool = False


@dataclass(frozen=True, slots=True)
class UserUsage:
    """A user's totals: overall, by model, and by chat tree for the most expensive ones."""

    totals: UsageTotals
    by_model: tuple[UsageRow, ...]
    by_chat: tuple[UsageRow, ...]
