"""The autostop of a workspace: deadlines, their extension by activity, and warnings."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from chatd.workspaces.domain.workspace import Lifetime, TtlSource

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


def chosen_lifetime(template: Lifetime, *, asked_ms: int | None, installation_ms: int) -> Lifetime:
    """Return the lifetime of a new workspace.

    The requested lifetime takes precedence over the installation's, which takes precedence over the
    template's, unless the template fixes its own. All are limited to the maximum of the template;
    0, no end, exceeds any maximum.
    """
    ttl_ms, source = template.ttl_ms, TtlSource.TEMPLATE
    if not template.is_ttl_fixed and asked_ms is not None:
        ttl_ms, source = asked_ms, TtlSource.REQUESTED
    elif not template.is_ttl_fixed and installation_ms:
        ttl_ms, source = installation_ms, TtlSource.INSTALLATION
    most_ms = template.ttl_max_ms
    if most_ms and (ttl_ms == 0 or ttl_ms > most_ms):
        ttl_ms, source = most_ms, TtlSource.TEMPLATE
    return replace(template, ttl_ms=ttl_ms, source=source)


def _after(moment: datetime, span_ms: int) -> datetime | None:
    return moment + timedelta(milliseconds=span_ms) if span_ms else None


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    known = [moment for moment in (one, other) if moment is not None]
    return min(known) if known else None
