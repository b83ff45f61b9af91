"""Rates of requests: how many of one address, user and API key a minute.

Each subject has a bucket that leaks evenly (the generic cell rate algorithm): a whole minute's
quota may come at once, and is free again as time passes. Only the time at which a bucket will be
empty is stored, so a bucket that is empty needs no entry.

Each process has buckets of its own. What it counted is shared with the other gateways in blocks, a
twentieth of a quota each, so that a subject gets about one quota from all of them together.
"""

import asyncio
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Final

from gateway.http.problems.errors import HttpProblem

WINDOW_S: Final = 60.0
#: Buckets of one policy that are kept; beyond it the ones that were filled first are dropped.
SUBJECTS_MAX: Final = 100_000
#: Into how many blocks a quota is divided for sharing.
BLOCKS: Final = 20
POLICY_HEADER: Final = "ratelimit-policy"
LIMIT_HEADER: Final = "ratelimit"


@dataclass(frozen=True, slots=True)
class Level:
    """How full a bucket is after a request.

    Attributes:
        left: How many more requests it takes now.
        empty_s: In how many seconds it is empty.
        wait_s: How long the request has to wait; None if it was counted.
    """

    left: int
    empty_s: float
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Requests of a subject that other gateways do not know of.

    Attributes:
        policy: The policy that counts them.
        subject: Whose they are.
        fill_s: How long they take to leak.
        age_s: How long ago the first of them was counted.
        empty_at_s: The time at which the subject's bucket in this process is empty with them.
    """

    policy: str
    subject: str
    fill_s: float
    age_s: float
    empty_at_s: float


class Rate:
    """The buckets of one policy.

    Args:
        name: The policy, as clients are told it.
        quota: Requests of one subject in a minute.
        subjects_max: Buckets that are kept.
        due: Called with a subject that has used a block.
    """

    def __init__(
        self,
        name: str,
        quota: int,
        *,
        subjects_max: int = SUBJECTS_MAX,
        due: Callable[[str], None] = lambda subject: None,
    ) -> None:
        self.name = name
        self.policy = f'"{name}";q={quota};w={WINDOW_S:.0f}'
        self._each_s = WINDOW_S / quota
        self._block_s = max(1, quota // BLOCKS) * self._each_s
        self._subjects_max = subjects_max
        self._due = due
        self._empty_at: dict[str, float] = {}
        #: What of a subject was not shared yet: since when, and how long it takes to leak. It does
        #: not leak here: the bucket of all processes does, once for all of them.
        self._unshared: dict[str, tuple[float, float]] = {}

    def count(self, subject: str, now_s: float) -> Level:
        """Count a request, or return how long it has to wait."""
        empty_at = max(self._empty_at.pop(subject, now_s), now_s) + self._each_s
        fill_s = empty_at - now_s
        if fill_s > WINDOW_S + self._each_s / 2:
            self._empty_at[subject] = empty_at - self._each_s
            return Level(0, fill_s - self._each_s, fill_s - WINDOW_S)
        self._empty_at[subject] = empty_at
        self._add_unshared(subject, now_s)
        if len(self._empty_at) > self._subjects_max:
            self._forget(now_s)
        return Level(max(0, round((WINDOW_S - fill_s) / self._each_s)), fill_s)

    def _add_unshared(self, subject: str, now_s: float) -> None:
        since_s, fill_s = self._unshared.get(subject, (now_s, 0.0))
        if now_s - since_s > WINDOW_S:
            # Less than a block in a minute: not worth a statement.
            since_s, fill_s = now_s, 0.0
        fill_s += self._each_s
        self._unshared[subject] = since_s, fill_s
        if fill_s > self._block_s - self._each_s / 2:
            self._due(subject)

    def take(self, subject: str, now_s: float) -> Block | None:
        """Return what of a subject was not shared yet, as shared from now on; None for nothing."""
        unshared = self._unshared.pop(subject, None)
        if unshared is None:
            return None
        since_s, fill_s = unshared
        empty_at_s = max(self._empty_at.get(subject, now_s), now_s)
        return Block(self.name, subject, fill_s, now_s - since_s, empty_at_s)

    def adopt(self, block: Block, empty_at_s: float) -> None:
        """Fill a bucket with what other gateways counted; `empty_at_s` is when that of all is."""
        others_s = empty_at_s - block.empty_at_s
        if others_s > 0:
            known = self._empty_at.get(block.subject, block.empty_at_s)
            self._empty_at[block.subject] = known + others_s

    def _forget(self, now_s: float) -> None:
        """Drop empty buckets, and then as many as must be, those used longest ago first."""
        self._empty_at = {
            subject: empty_at for subject, empty_at in self._empty_at.items() if empty_at > now_s
        }
        surplus = len(self._empty_at) - self._subjects_max * 9 // 10
        for subject in list(self._empty_at)[: max(0, surplus)]:
            del self._empty_at[subject]
        self._unshared = {
            subject: unshared
            for subject, unshared in self._unshared.items()
            if subject in self._empty_at
        }


@dataclass(frozen=True, slots=True)
class RateQuotas:
    """Requests in a minute; 0 for no limit.

    Attributes:
        address: Of one address, before it is known who sends them.
        user: Of one user.
        key: Of one API key.
    """

    address: int = 0
    user: int = 0
    key: int = 0


NO_QUOTAS: Final = RateQuotas()


class Rates:
    """The rates of addresses, users and API keys in this process.

    Attributes:
        is_due: Set while blocks wait to be shared.
    """

    def __init__(self, quotas: RateQuotas) -> None:
        named = (("address", quotas.address), ("user", quotas.user), ("key", quotas.key))
        self._rates = {
            name: Rate(name, quota, due=partial(self._add_due, name))
            for name, quota in named
            if quota
        }
        self._due: dict[tuple[str, str], None] = {}
        self.is_due = asyncio.Event()

    def count(
        self, name: str, subject: str, now_s: float, headers: MutableMapping[str, str]
    ) -> None:
        """Count a request of a subject, and tell the client in the headers of the response.

        Raises:
            HttpProblem: The subject has made too many (429).
        """
        rate = self._rates.get(name)
        if rate is None:
            return
        level = rate.count(subject, now_s)
        said = f'"{name}";r={level.left};t={ceil(level.empty_s)}'
        _append(headers, POLICY_HEADER, rate.policy)
        _append(headers, LIMIT_HEADER, said)
        if level.wait_s is not None:
            whose = {"address": "from your address", "user": "of yours", "key": "of this API key"}
            detail = f"There were too many requests {whose[name]} within a minute; send fewer."
            raise HttpProblem.of("TOO_MANY_REQUESTS", detail, retry_after_s=level.wait_s)

    def take_due(self, now_s: float) -> tuple[Block, ...]:
        """Return the blocks to share, as shared from now on."""
        due, self._due = self._due, {}
        self.is_due.clear()
        taken = (self._rates[name].take(subject, now_s) for name, subject in due)
        return tuple(block for block in taken if block is not None)

    def adopt(self, block: Block, empty_at_s: float) -> None:
        """Add what other gateways counted; `empty_at_s` is when the bucket of all is empty."""
        self._rates[block.policy].adopt(block, empty_at_s)

    def _add_due(self, name: str, subject: str) -> None:
        self._due[name, subject] = None
        self.is_due.set()


def _append(headers: MutableMapping[str, str], name: str, item: str) -> None:
    headers[name] = f"{headers[name]}, {item}" if name in headers else item
