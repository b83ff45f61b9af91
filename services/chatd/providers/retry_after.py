"""The Retry-After of a provider."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|\.\d+")


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait that the response headers request; None if they request none.

    Milliseconds come before seconds, and those before a date; an unreadable value is ignored.
    """
    named = {name.lower(): value.strip() for name, value in headers.items()}
    waits = (
        _number(named.get("retry-after-ms", ""), per_second=1000),
        _number(named.get("retry-after", ""), per_second=1),
        _until(named.get("retry-after", ""), now),
    )
    return next((wait_s for wait_s in waits if wait_s is not None), None)


def _number(value: str, *, per_second: int) -> float | None:
    if not _NUMBER.fullmatch(value):
        return None
    wait_s = float(value) / per_second
    return wait_s if 0 < wait_s < float("inf") else None


def _until(value: str, now: datetime) -> float | None:
    try:
        at = parsedate_to_datetime(value)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        wait_s = (at - now).total_seconds()
    except (ValueError, OverflowError):
        return None
    return wait_s if wait_s > 0 else None
