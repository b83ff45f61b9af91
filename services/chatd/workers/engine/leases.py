"""Lease validity of a worker: pure functions over times of one monotonic clock.

A lease counts from the time before its renewal was sent, because the database may have dated it any
time after. No new effect starts in its last `fence_margin_s`. Chats of other workers are taken only
after `contact_s` of unbroken contact: after an outage of the database every lease looks expired,
and live workers need time to renew theirs. Contact is broken by a failure and by silence, also by
this process's own: a stopped process, or an event loop that does not run, sends nothing.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The duration of a lease, and the intervals and margins of its holder."""

    lease_s: float = 15.0
    renew_every_s: float = 4.0
    renew_again_s: float = 1.0  # After a failed renewal.
    fence_margin_s: float = 3.0
    contact_s: float = 8.0

    @classmethod
    def of(cls, lease_s: float, renew_every_s: float) -> "LeaseTiming":
        """Return the timing of a lease; the contact time is two renewals."""
        renew_again_s = min(cls().renew_again_s, renew_every_s)
        return cls(lease_s, renew_every_s, renew_again_s, contact_s=2 * renew_every_s)

    @property
    def silence_max_s(self) -> float:
        """Return how long no response may arrive before contact counts as broken."""
        return self.renew_every_s + self.fence_margin_s


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as its holder tracks it.

    Attributes:
        sent_at: When the last successful renewal was sent.
        answered_at: When its response arrived.
        contact_since: Since when every renewal succeeded; None after a failure.
    """

    sent_at: float
    answered_at: float
    contact_since: float | None

    def valid_until(self, timing: LeaseTiming) -> float:
        """Return the earliest time at which other workers may take over."""
        return self.sent_at + timing.lease_s

    def may_act(self, now: float, timing: LeaseTiming) -> bool:
        """Return whether a new effect may start."""
        return now < self.valid_until(timing) - timing.fence_margin_s

    def may_sweep(self, now: float, timing: LeaseTiming) -> bool:
        """Return whether chats of other workers may be considered abandoned."""
        if self.contact_since is None or now - self.answered_at > timing.silence_max_s:
            return False
        return self.may_act(now, timing) and now - self.contact_since >= timing.contact_s


def renewed(
    before: Lease | None, *, sent_at: float, answered_at: float, timing: LeaseTiming
) -> Lease:
    """Return the lease after a successful renewal."""
    since = None if before is None else before.contact_since
    is_unbroken = before is not None and answered_at - before.answered_at <= timing.silence_max_s
    return Lease(sent_at, answered_at, since if since is not None and is_unbroken else answered_at)


def contact_lost(before: Lease | None) -> Lease | None:
    """Return the lease after a failed database call: same expiry, but contact is broken."""
    return None if before is None else replace(before, contact_since=None)
