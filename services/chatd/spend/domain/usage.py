"""What was used and spent, summed up."""

from dataclasses import dataclass
from datetime import datetime

from chatd.primitives.domain.ids import OwnerId


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """Sums over model calls; what has no price counts as unpriced and costs nothing."""

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


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The sums of one user, model or chat tree; the name is empty where there is none."""

    id: str
    name: str
    totals: UsageTotals


@dataclass(frozen=True, slots=True)
class UsageSpan:
    """From a moment, inclusive, to another one, exclusive."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class UsageReader:
    """Somebody who asks: they see their own usage, and everybody's if they may."""

    id: OwnerId
    may_read_all: bool = False


@dataclass(frozen=True, slots=True)
class UserUsage:
    """A user's sums: all of it, by model, and by chat tree, the most expensive ones."""

    totals: UsageTotals
    by_model: tuple[UsageRow, ...]
    by_chat: tuple[UsageRow, ...]
