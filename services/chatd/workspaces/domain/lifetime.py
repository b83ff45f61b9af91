"""When a workspace stops by itself: deadlines, how activity moves them, and when to warn."""

from datetime import datetime, timedelta
from typing import Final

from chatd.workspaces.domain.workspace import Lifetime

#: How long before its autostop people are told.
WARNING: Final = timedelta(minutes=5)
#: A push that is smaller than this part of a whole one is not worth a write.
USE_WRITE_INTERVAL: Final = 0.05

TTL_MS_MIN: Final = 60_000
TTL_MS_MAX: Final = 30 * 24 * 3_600_000


def deadlines(lifetime: Lifetime, started_at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return when a workspace that starts now stops, and the latest that activity can reach."""
    latest = _after(started_at, lifetime.ttl_max_ms)
    first = _after(started_at, lifetime.ttl_ms)
    return _earlier(first, latest), latest


def bumped(
    lifetime: Lifetime, deadline: datetime | None, latest: datetime | None, now: datetime
) -> datetime | None:
    """Return the deadline after activity now; the same while moving it is not worth a write."""
    if deadline is None:
        return None
    wanted = now + timedelta(milliseconds=lifetime.bump_ms)
    wanted = wanted if latest is None else min(wanted, latest)
    if wanted - deadline < is_worth_writing(lifetime) and wanted != latest:
        return deadline
    return max(deadline, wanted)


def is_worth_writing(lifetime: Lifetime) -> timedelta:
    """Return how much must change before it is written down."""
    return timedelta(milliseconds=lifetime.bump_ms * USE_WRITE_INTERVAL)


def is_due(deadline: datetime | None, now: datetime) -> bool:
    """Return whether a workspace must stop now."""
    return deadline is not None and deadline <= now


def is_warning_due(deadline: datetime | None, warned_for: datetime | None, now: datetime) -> bool:
    """Return whether people must be told now that a workspace will stop; once per deadline."""
    return deadline is not None and warned_for != deadline and deadline - now <= WARNING


def chosen_ttl_ms(
    *, asked_ms: int | None, installation_ms: int, template_ms: int, template_max_ms: int
) -> int:
    """Return the lifetime of a new workspace.

    What was asked for wins over the installation's, which wins over the template's. None reaches
    beyond the most that the template allows, and no end is beyond any.
    """
    wanted = asked_ms if asked_ms is not None else (installation_ms or template_ms)
    if template_max_ms and (wanted == 0 or wanted > template_max_ms):
        return template_max_ms
    return wanted


def _after(moment: datetime, span_ms: int) -> datetime | None:
    return moment + timedelta(milliseconds=span_ms) if span_ms else None


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    known = [moment for moment in (one, other) if moment is not None]
    return min(known) if known else None
