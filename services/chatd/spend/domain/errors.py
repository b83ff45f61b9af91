"""Errors of spend limits."""

from datetime import datetime

from chatd.primitives.domain.errors import ChatError
from chatd.spend.domain.limits import dollars


class UsageLimitReached(ChatError):
    """The owner has reached their spend limit until a time."""

    def __init__(
        self, *, spent_micros: int, limit_micros: int, resets_at: datetime, retry_after_s: float
    ) -> None:
        super().__init__(
            f"{dollars(spent_micros)} of {dollars(limit_micros)} are spent; go on after {resets_at}"
        )
        self.spent_micros = spent_micros
        self.limit_micros = limit_micros
        self.resets_at = resets_at
        self.retry_after_s = retry_after_s
