"""The lines between processes and services: every message takes its time, some are lost."""

import asyncio
import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from typing import TypeVar

from support.simulation.loop import Host, VirtualLoop
from support.simulation.mischief import Twist

T = TypeVar("T")

NOWHERE = Context()  # The world itself: no process's.
SLOW_MAX_S = 2.0
ERROR_S = 0.2
UNREACHABLE_S = 0.4
LATE = 0.4  # Of the requests that seem lost, those that arrive after all.
LATE_MAX_S = 8.0


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad the lines are: the part of all messages that is slow, or lost on the way."""

    slow: float = 0.0
    lost: float = 0.0


FAIR = Weather()


class Network:
    """Carries requests and answers; what was sent arrives even if its sender died meanwhile."""

    def __init__(self, loop: VirtualLoop, rng: random.Random) -> None:
        self._loop = loop
        self._rng = rng
        self.weather = FAIR

    async def ask(
        self,
        host: Host,
        work: Callable[[], T],
        broken: Callable[[], Exception],
        *,
        twist: Twist | None = None,
        late: Callable[[], None] = lambda: None,
    ) -> T:
        """Have a service do `work` and return its answer.

        A message that is lost looks alike on both ways: the line is broken, and whether the work
        was done nobody knows. It may even be done later, when nobody waits for it any more.

        Args:
            host: Who asks.
            work: What is done where the message arrives.
            broken: Returns what the host sees of a message that was lost.
            twist: What happens between the work and its answer.
            late: Called after work that its sender had given up before it arrived.
        """
        host.require_life()
        reply: asyncio.Future[T] = self._loop.create_future()
        if self.weather is not FAIR:
            host.trouble(self._loop.time() + SLOW_MAX_S)
        is_lost = twist is not None and twist.is_lost
        if is_lost or host.cut_off_until_s > self._loop.time():
            host.trouble(self._loop.time() + UNREACHABLE_S)
            self.later(UNREACHABLE_S, lambda: fail_reply(reply, broken()))
            return await reply

        def arrive() -> None:
            is_given_up = reply.done() and not reply.cancelled()
            try:
                answer = work()
            except Exception as error:
                fail_reply(reply, error)
                return
            if is_given_up:
                late()
            is_twisted = twist is not None and twist.loses_answer()
            if is_twisted or self.is_lost():
                host.trouble(self._loop.time())
                self.later(ERROR_S, lambda: fail_reply(reply, broken()))
            elif self.weather is FAIR:
                settle_reply(reply, answer)
            else:
                host.trouble(self._loop.time() + SLOW_MAX_S)
                self.later(self.delay_s(), lambda: settle_reply(reply, answer))

        delay_s = 0.0 if twist is None else twist.delay_s
        self.send(arrive, lambda: fail_reply(reply, broken()), delay_s)
        return await reply

    def send(
        self, arrive: Callable[[], None], seem_lost: Callable[[], None], delay_s: float = 0.0
    ) -> None:
        """Carry a message; one that is lost is noticed soon, and may arrive after all."""
        if not self.is_lost():
            self.later(delay_s + self.delay_s(), arrive)
            return
        self.later(ERROR_S, seem_lost)
        if self._rng.random() < LATE:
            self.later(self._rng.uniform(ERROR_S, LATE_MAX_S), arrive)

    def later(self, delay_s: float, work: Callable[[], object]) -> None:
        """Do something in the world after a while, whatever becomes of the processes."""
        self._loop.call_later(delay_s, work, context=NOWHERE)

    def delay_s(self) -> float:
        """Return how long a message takes."""
        rng = self._rng.random()
        if rng < self.weather.slow:
            return self._rng.uniform(0.1, SLOW_MAX_S)
        return 0.001 + 0.01 * rng

    def is_lost(self) -> bool:
        """Return whether a message is lost."""
        return self.weather.lost > 0 and self._rng.random() < self.weather.lost


def settle_reply(reply: asyncio.Future[T], answer: T) -> None:
    """Answer somebody who may be gone."""
    if not reply.done():
        reply.set_result(answer)


def fail_reply(reply: asyncio.Future[T], error: Exception) -> None:
    """Refuse somebody who may be gone."""
    if not reply.done():
        reply.set_exception(error)
