"""Admission of requests: rates, limits and fair queueing per user.

Requests of an address, a user and an API key are counted by the minute; the address before the
credential is checked, so that guessing keys is slow too.

Every request of a user occupies a place while it lasts, streams included, and a user gets a fair
share of the places. Each long-running request holds a call to another service, so their number is
limited. Of all other requests, and of streams that are being opened, only some of a user run
concurrently and the rest wait in order; one whose client disconnects meanwhile is dropped without
being run. While other users make requests too, fewer requests of a user run concurrently: each of
them delays the requests of the others. A stream that was opened and a long-running request that was
started then keep a slot for a moment, and any other request for as long again as it took, at most
for that moment, so that a user who makes thousands leaves time for others. The longer the requests
take, the less of that time is left, and so the moment is longer for a user who sends more than run
all the time; one whose requests wait only now and then, as for a page, is not slowed down by that.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol, assert_never

from opentelemetry.metrics import Meter

from gateway.http.limits.connections import ADDRESS_MULTIPLE
from gateway.http.limits.fair_share import FairShare
from gateway.http.limits.rates import NO_QUOTAS, RateQuotas, Rates
from gateway.http.problems.errors import HttpProblem
from parley.clock import Clock

RETRY_AFTER_S: Final = 2.0
#: How long a request may wait for other requests of its user.
WAIT_S_MAX: Final = 120.0
#: A user whose requests have waited for so long without a pause sends more than may run.
BUSY_AFTER_S: Final = 1.0
#: How many times as long as it took a request of such a user keeps its slot.
BUSY_MULTIPLE: Final = 3
#: A user who made a request within this time counts as active.
ACTIVE_S: Final = 5.0
REFUSED: Final = "gateway.requests.refused"


class Duration(Enum):
    """The duration class of a route."""

    #: A request with a response of limited duration.
    SHORT = auto()
    #: A request that waits or transfers for long, with a call to another service for each.
    LONG_RUNNING = auto()
    #: A stream of unlimited duration, over a connection that all clients share.
    STREAM = auto()


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """Limits of concurrent requests.

    Attributes:
        requests_max: Of all users.
        user_requests_max: Of one user.
        address_requests_max: Of one address.
        user_long_running_max: Long-running ones of one user.
        user_calls_max: Of one user that run concurrently.
        shared_user_calls_max: The same, while other users are active.
        opened_s: How long an opened stream or a started long-running request keeps its slot while
            other users are active; with 4 slots a user opens 40 a second. Other requests keep it
            no longer than they took.
        busy_s: The same for other requests than those, of a user who sends more than may run all
            the time.
        quotas: Requests of one address, user and API key in a minute.
    """

    requests_max: int = 20_000
    user_requests_max: int = 10_000
    address_requests_max: int = 15_000
    user_long_running_max: int = 200
    user_calls_max: int = 64
    shared_user_calls_max: int = 4
    opened_s: float = 0.1
    busy_s: float = 0.5
    quotas: RateQuotas = NO_QUOTAS

    def kept_s(self, took_s: float, *, is_busy: bool) -> float:
        """Return how long the slot of a request that took so long is kept for other users."""
        if is_busy:
            return min(BUSY_MULTIPLE * took_s, self.busy_s)
        return min(took_s, self.opened_s)


class Presence(Protocol):
    """Whether the client of a request is still connected."""

    @property
    def is_gone(self) -> bool:
        """Whether the client is known to be disconnected."""
        ...

    def when_gone(self, tell: Callable[[], object]) -> Callable[[], object]:
        """Call `tell` once the client disconnects, possibly at once; return how to cancel that."""
        ...


@dataclass(frozen=True, slots=True)
class Requester:
    """The user, address and connection of a request.

    Attributes:
        user_id: The user; empty without a sign-in.
        address: The key by which the client's address is counted.
        presence: Reports the disconnection of the client; None if that cannot be detected.
        waited_s: How long the request waited before it was started.
    """

    user_id: str
    address: str
    presence: Presence | None
    waited_s: float = 0.0


class _UserSlots:
    """The running and the waiting requests of one user.

    Attributes:
        running: How many run.
        waiting: Those that wait, in order.
        waiting_since_s: Since when some have waited without a pause; None if none waits.
    """

    __slots__ = ("running", "waiting", "waiting_since_s")

    def __init__(self) -> None:
        self.running = 0
        self.waiting_since_s: float | None = None
        self.waiting: deque[asyncio.Future[bool]] = deque()


class Admission:
    """Admits requests within the limits.

    Attributes:
        rates: The rates of requests.
    """

    def __init__(self, limits: AdmissionLimits, clock: Clock, meter: Meter | None = None) -> None:
        self._limits = limits
        self._clock = clock
        self.rates = Rates(limits.quotas)
        #: The time of each user's last request, the oldest first.
        self._active: OrderedDict[str, float] = OrderedDict()
        self._users = FairShare(limits.requests_max, each_max=limits.user_requests_max)
        self._addresses = FairShare(
            limits.requests_max,
            each_max=limits.address_requests_max,
            multiple=ADDRESS_MULTIPLE,
        )
        self._long_running: dict[str, int] = {}
        self._turns: dict[str, _UserSlots] = {}
        self._refused = (
            None
            if meter is None
            else meter.create_counter(
                REFUSED,
                unit="{request}",
                description="Requests that were refused because there were too many, by reason.",
            )
        )

    def count(self, policy: str, subject: str, headers: MutableMapping[str, str]) -> None:
        """Count a request for a rate ("address", "user" or "key"), and tell in the headers.

        Raises:
            HttpProblem: The subject has made too many within a minute (429).
        """
        try:
            self.rates.count(policy, subject, self._clock.monotonic(), headers)
        except HttpProblem as refusal:
            raise self._counted(refusal) from None

    @asynccontextmanager
    async def admitted(
        self, requester: Requester, duration: Duration
    ) -> AsyncIterator[Callable[[], None]]:
        """Admit a request while the context lasts; yield a callback for when a stream is open.

        Opening a stream counts as a running request; the open stream does not.

        Raises:
            HttpProblem: The user or the address has too many requests (429), all together have
                (503), or the client disconnected while it waited (499).
        """
        self._acquire(requester)
        try:
            match duration:
                case Duration.SHORT:
                    async with self._turn(requester):
                        yield _nothing
                case Duration.STREAM:
                    async with self._turn(requester, opens=True) as end_turn:
                        yield end_turn
                case Duration.LONG_RUNNING:
                    # Refusals occupy a slot too: a client repeats what was refused.
                    async with self._turn(requester, opens=True) as end_turn:
                        with self._counted_long_running(requester.user_id):
                            # It waits for long, so that only its start occupies a slot.
                            end_turn()
                            yield _nothing
                case _:
                    assert_never(duration)
        finally:
            self._release(requester)

    def _acquire(self, requester: Requester) -> None:
        if not self._addresses.take(requester.address):
            raise self._too_many(self._addresses, "from your address")
        if requester.user_id and not self._users.take(requester.user_id):
            self._addresses.release(requester.address)
            raise self._too_many(self._users, "of yours")

    def _release(self, requester: Requester) -> None:
        self._addresses.release(requester.address)
        if requester.user_id:
            self._users.release(requester.user_id)

    def _too_many(self, share: FairShare, whose: str) -> HttpProblem:
        if share.is_full:
            detail = "There are as many requests open as this server takes; try again shortly."
            return self._counted(HttpProblem.of("SERVER_BUSY", detail, retry_after_s=RETRY_AFTER_S))
        detail = (
            f"There are as many requests and streams {whose} open as may be ({share.bound()} at "
            "the moment); close some, then try again."
        )
        return self._counted(
            HttpProblem.of("TOO_MANY_REQUESTS", detail, retry_after_s=RETRY_AFTER_S)
        )

    def _counted(self, refusal: HttpProblem) -> HttpProblem:
        if self._refused is not None:
            self._refused.add(1, {"code": refusal.code})
        return refusal

    @contextmanager
    def _counted_long_running(self, user_id: str) -> Iterator[None]:
        """Count a long-running request while it lasts."""
        count = self._long_running.get(user_id, 0)
        if count >= self._limits.user_long_running_max:
            detail = (
                f"You have {count} requests open that wait, watch or transfer files, which is the "
                "most; end some, then try again."
            )
            raise self._counted(
                HttpProblem.of(
                    "TOO_MANY_LONG_RUNNING_REQUESTS", detail, retry_after_s=RETRY_AFTER_S
                )
            )
        self._long_running[user_id] = count + 1
        try:
            yield
        finally:
            left = self._long_running[user_id] - 1
            if left:
                self._long_running[user_id] = left
            else:
                del self._long_running[user_id]

    @asynccontextmanager
    async def _turn(
        self, requester: Requester, *, opens: bool = False
    ) -> AsyncIterator[Callable[[], None]]:
        """Wait until the user has fewer running requests than allowed; yield a release callback.

        Args:
            requester: Who makes the request.
            opens: Whether it opens a stream or starts a long-running request.
        """
        if not requester.user_id:
            yield _nothing
            return
        if requester.presence is not None and requester.presence.is_gone:
            raise _client_gone()
        turns = self._turns.get(requester.user_id)
        if turns is None:
            turns = self._turns[requester.user_id] = _UserSlots()
        self._active[requester.user_id] = self._clock.monotonic()
        self._active.move_to_end(requester.user_id)
        if not turns.waiting and turns.running < self._calls_max():
            turns.running += 1
        elif not await self._waited(turns, requester):
            raise _client_gone()
        started_s = self._clock.monotonic()
        is_over = False

        def end() -> None:
            nonlocal is_over
            if is_over:
                return
            is_over = True
            if self._is_shared() and (kept_s := self._kept_s(turns, started_s, opens=opens)):
                loop = asyncio.get_running_loop()
                loop.call_later(kept_s, self._release_slot, requester.user_id, turns)
            else:
                self._release_slot(requester.user_id, turns)

        try:
            yield end
        finally:
            end()

    def _kept_s(self, turns: _UserSlots, started_s: float, *, opens: bool) -> float:
        """Return how long a slot is kept after its release while other users are active."""
        if opens:
            return self._limits.opened_s
        now_s, since_s = self._clock.monotonic(), turns.waiting_since_s
        is_busy = since_s is not None and now_s - since_s >= BUSY_AFTER_S
        return self._limits.kept_s(now_s - started_s, is_busy=is_busy)

    def _calls_max(self) -> int:
        """Return how many requests of one user may run concurrently now."""
        if not self._is_shared():
            return self._limits.user_calls_max
        return min(self._limits.shared_user_calls_max, self._limits.user_calls_max)

    def _is_shared(self) -> bool:
        """Return whether more than one user is active."""
        active_since_s = self._clock.monotonic() - ACTIVE_S
        while self._active and next(iter(self._active.values())) < active_since_s:
            self._active.popitem(last=False)
        return len(self._active) > 1

    async def _waited(self, turns: _UserSlots, requester: Requester) -> bool:
        """Return whether this request may run; False if its client disconnected."""
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        turns.waiting.append(turn)
        if turns.waiting_since_s is None:
            turns.waiting_since_s = self._clock.monotonic()
        self._start(turns)

        def gone() -> None:
            if not turn.done():
                turn.set_result(False)

        presence = requester.presence
        forget = None if presence is None else presence.when_gone(gone)
        has_turn = False
        try:
            async with asyncio.timeout(max(0.0, WAIT_S_MAX - requester.waited_s)):
                has_turn = await turn
        except TimeoutError:
            detail = f"Other requests of yours took more than {WAIT_S_MAX:g} s; send fewer at once."
            raise self._counted(
                HttpProblem.of("TOO_MANY_REQUESTS", detail, retry_after_s=RETRY_AFTER_S)
            ) from None
        finally:
            if not has_turn and turn.done() and not turn.cancelled() and turn.result():
                # The slot was assigned at the same moment as this request was cancelled.
                self._pass_on(turns)
            if forget is not None:
                forget()
        return has_turn

    def _release_slot(self, user_id: str, turns: _UserSlots) -> None:
        self._pass_on(turns)
        if not turns.running and not turns.waiting:
            self._turns.pop(user_id, None)

    def _pass_on(self, turns: _UserSlots) -> None:
        """Release a slot and start the next waiting requests."""
        turns.running -= 1
        self._start(turns)

    def _start(self, turns: _UserSlots) -> None:
        """Start waiting requests, in order, up to the limit."""
        calls_max = self._calls_max()
        while turns.waiting and turns.running < calls_max:
            following = turns.waiting.popleft()
            if not following.done():
                turns.running += 1
                following.set_result(True)
        if not turns.waiting:
            turns.waiting_since_s = None


def _nothing() -> None:
    """Do nothing: the request runs until it has ended."""


def _client_gone() -> HttpProblem:
    return HttpProblem.of("CLIENT_CLOSED_REQUEST", "The client went away.")
