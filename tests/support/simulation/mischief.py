"""Trouble in the middle of a statement: before it arrives, or between its commit and its answer.

A process that dies, hangs or loses its line at a random moment is hardly ever hit there, and there
is where the hard cases are: a commit that its writer does not know of, and a write of somebody who
has been replaced meanwhile.
"""

import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.commands import RecordRetry
from chatd.primitives.domain.ids import ChatId
from support.simulation.climate import Climate
from support.simulation.rules import Author

READS = 0.004


class Victim(Protocol):
    """A process that something can happen to."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...


@dataclass(frozen=True, slots=True)
class Twist:
    """What happens to one statement.

    Attributes:
        loses_answer: Happens after it was executed; says whether the answer is lost by it.
        delay_s: How much later it arrives than it would.
        is_lost: Whether it does not arrive at all.
    """

    loses_answer: Callable[[], bool] = lambda: False
    delay_s: float = 0.0
    is_lost: bool = False


Trick = Callable[[Victim, ChatId | None], Twist]
Weighted = tuple[tuple[Trick, int], ...]


@dataclass(frozen=True, slots=True)
class Tricks:
    """What can happen, with how often it does; some only to writes of a kind."""

    always: Weighted = ()
    to_writes: Weighted = ()
    to_claims: Weighted = ()
    to_interruptions: Weighted = ()
    to_retries: Weighted = ()


class Mischief:
    """Chooses now and then what goes wrong with a statement; `is_on` while faults happen."""

    def __init__(self, rng: random.Random, climate: Climate) -> None:
        self.is_on = False
        self._rng = rng
        self._climate = climate
        self._tricks = Tricks()

    def begin(self, tricks: Tricks) -> None:
        """Let things go wrong from now on."""
        self._tricks = tricks
        self.is_on = True

    def of_read(self, victim: Victim) -> Twist | None:
        """Return what happens to a statement of a process, mostly nothing."""
        if not self.is_on or self._rng.random() >= READS:
            return None
        return self._chosen(self._tricks.always, victim, None)

    def of_write(self, victim: Victim, seen: ChatState, author: Author) -> Twist | None:
        """Return what happens to a write, often something."""
        if not self.is_on:
            return None
        for rate, tricks in self._chances(seen, author):
            if self._rng.random() < rate:
                return self._chosen(tricks, victim, seen.chat_id)
        return None

    def _chances(self, seen: ChatState, author: Author) -> Iterator[tuple[float, Weighted]]:
        """Yield what can happen to a write, and how likely that is."""
        climate, tricks = self._climate, self._tricks
        if getattr(author.command, "claimed_by", None) is not None:
            yield climate.hindered_claims, tricks.to_claims
        if seen.status is Status.INTERRUPTING and author.worker_id == seen.worker_id:
            yield climate.hindered_interruptions, tricks.to_interruptions
        if isinstance(author.command, RecordRetry):
            yield climate.hindered_retries, tricks.to_retries
        yield climate.hindered_writes, tricks.always + tricks.to_writes

    def _chosen(self, tricks: Weighted, victim: Victim, chat_id: ChatId | None) -> Twist:
        (trick,) = self._rng.choices([each for each, _ in tricks], [w for _, w in tricks])
        twist = trick(victim, chat_id)
        return Twist(lambda: self.is_on and twist.loses_answer(), twist.delay_s, twist.is_lost)
