"""Times ahead as people say them."""

from datetime import datetime
from math import ceil
from typing import Final

MINUTE_S: Final = 60
HOUR_S: Final = 60 * MINUTE_S
DAY_S: Final = 24 * HOUR_S


def ahead(wait_s: float) -> str:
    """Return how long it is until a time, such as `in 3 hours`; rounded up at each unit."""
    if wait_s <= 0:
        return "now"
    for unit_s, below_s, unit in (
        (1, 90, "second"),
        (MINUTE_S, 90 * MINUTE_S, "minute"),
        (HOUR_S, 36 * HOUR_S, "hour"),
    ):
        if wait_s < below_s:
            return _counted(ceil(wait_s / unit_s), unit)
    return _counted(ceil(wait_s / DAY_S), "day")


def until(text: str, now: datetime) -> str:
    """Return a time of the API with how long it is until then; another text stays as it is."""
    try:
        at = datetime.fromisoformat(text)
        return f"{at:%Y-%m-%d %H:%M} UTC ({ahead((at - now).total_seconds())})"
    except (ValueError, TypeError):
        return text


def _counted(number: int, unit: str) -> str:
    return f"in {number} {unit}{'' if number == 1 else 's'}"
