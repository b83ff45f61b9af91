"""The autostop of a workspace: deadlines, their extension by activity, and warnings."""

from datetime import datetime, timedelta
from typing import Final

from chatd.workspaces.domain.workspace import Lifetime

#: How long before the autostop users are warned.
WARNING: Final = timedelta(minutes=5)
#: An extension smaller than this share of a full one is not written.
USE_WRITE_INTERVAL: Final = 0.05

TTL_MS_MIN: Final = 60_000
TTL_MS_MAX: Final = 30 * 24 * 3_600_000


def deadlines(lifetime: Lifetime, started_at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the autostop time of a workspace that starts now, and the latest possible one."""
    latest = _after(started_at, lifetime.ttl_max_ms)
    first = _after(started_at, lifetime.ttl_ms)
    return _earlier(first, latest), latest


def bumped(
    lifetime: Lifetime, deadline: datetime | None, latest: datetime | None, now: datetime
) -> datetime | None:
    """Return the deadline after activity now; unchanged if the extension is too small to write."""
    if deadline is None:
        return None
    wanted = now + timedelta(milliseconds=lifetime.bump_ms)
    wanted = wanted if latest is None else min(wanted, latest)
    if wanted - deadline < is_worth_writing(lifetime) and wanted != latest:
        return deadline
    return max(deadline, wanted)


def is_worth_writing(lifetime: Lifetime) -> timedelta:
    """Return the smallest extension that is written."""
    return timedelta(milliseconds=lifetime.bump_ms * USE_WRITE_INTERVAL)


def is_due(deadline: datetime | None, now: datetime) -> bool:
    """Return whether a workspace must stop now."""
    return deadline is not None and deadline <= now


def chosen_ttl_ms(
    *, asked_ms: int | None, installation_ms: int, template_ms: int, template_max_ms: int
) -> int:
    """Return the lifetime of a new workspace.

    The requested lifetime takes precedence over the installation's, which takes precedence over the
    template's. All are limited to the maximum of the template; 0, no end, exceeds any maximum.
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
