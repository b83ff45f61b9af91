"""What kind of trouble a run has: every seed draws its own, so that each kind is common somewhere.

A run in which everything may happen a little sees little of what takes three of one kind.
"""

import random  # noqa: TID251 (only the type; chance is an argument)
from dataclasses import dataclass, replace
from typing import Self

SHORT_S = (0.5, 1.5, 4.0)
TO_THE_EDGE_S = (12.5, 13.0, 14.0)  # What is left of a lease then is less than its margin.
TOO_LONG_S = (16.0, 18.0, 25.0)
# What a run costs grows with its chats, and most of what can go wrong needs only one.
CHATS = {1: 270, 2: 50, 3: 9, 5: 4, 30: 1}
WAITS = 0.125
REVERTS = 0.125
REVERTS_WEIGHT = 8
RUSHES = 0.0625
RUSHING_PEOPLE = 8
WAITS_WEIGHT = 8
WAITING_CHATS_MAX = 5


@dataclass(frozen=True, slots=True)
class Climate:
    """How likely things are.

    Attributes:
        hindered_writes: Something happens to a write.
        hindered_claims: Something happens to a write that claims a chat.
        hindered_interruptions: Something happens to a write that ends an interruption.
        hindered_retries: Something happens to a write that opens the next attempt.
        holds: An owner is held up that was just asked to stop.
        holds_s: For how long processes are held up.
        late_answers: A worker is held up that is about to answer for a client.
        impatience: A user goes away before the answer comes.
        crashes: Preparing a turn crashes.
        long_answers: A model talks for long.
        broken_answers: A model fails before a word.
        lost_news: How much of what processes tell each other is lost, all the time.
        faults: How many of the faults with time can happen at all.
        chats: How many chats there are.
        asking: How often a model asks the client, compared with other tools.
        wishes: How much users like each thing they can do, the sending of messages aside.
        people: How often a model asks people, compared with other tools; 0 for never.
        waits: How often a model waits for other chats, compared with other tools; 0 for never.
        reverts: How much users like to go back and to return, compared with other things; 0 for
            never.
        rushes: Whether all users of a chat act at the moment at which it asks something.
        deadlines_s: How long clients, people who are asked, and people who may allow something
            are waited for.
    """

    hindered_writes: float
    hindered_claims: float
    hindered_interruptions: float
    hindered_retries: float
    holds: float
    holds_s: tuple[float, ...]
    late_answers: float
    impatience: float
    crashes: float
    long_answers: float
    broken_answers: float
    lost_news: float
    faults: float
    chats: int
    asking: int
    wishes: tuple[int, ...]
    people: int
    waits: int = 0
    reverts: int = 0
    rushes: bool = False
    deadlines_s: tuple[float, float, float] = (5.0, 5.0, 5.0)  # Some are late in every run.

    @classmethod
    def drawn(cls, rng: random.Random) -> Self:
        """Draw one."""
        return cls(
            hindered_writes=rng.choice((0.0, 0.05, 0.25)),
            hindered_claims=rng.choice((0.0, 0.3)),
            hindered_interruptions=rng.choice((0.0, 0.8)),
            hindered_retries=rng.choice((0.0, 0.6)),
            holds=rng.choice((0.0, 0.0, 0.5)),
            holds_s=rng.choice(
                (SHORT_S, TO_THE_EDGE_S, TOO_LONG_S, SHORT_S + TO_THE_EDGE_S + TOO_LONG_S)
            ),
            late_answers=rng.choice((0.5, 1.0)),
            impatience=rng.choice((0.0, 0.2, 0.6)),
            crashes=rng.choice((0.0, 0.03, 0.1)),
            long_answers=rng.choice((0.0, 0.0, 0.5)),
            broken_answers=rng.choice((0.02, 0.25)),
            lost_news=rng.choice((0.0, 1.0, 1.0)),
            faults=rng.choice((0.0, 0.4, 1.0)),
            chats=rng.choices(tuple(CHATS), tuple(CHATS.values()))[0],
            asking=rng.choice((1, 12)),
            wishes=tuple(rng.choice((0, 1, 1, 4)) for _ in range(8)),
            people=rng.choice((0, 0, 8)),
        )

    def with_waits(self, rng: random.Random) -> Self:
        """Return this climate, in some runs with models that wait for other chats.

        `rng` is not that of the run, so that all other runs stay as they are.
        """
        if self.chats > WAITING_CHATS_MAX or rng.random() >= WAITS:
            return self
        return replace(self, waits=WAITS_WEIGHT, chats=max(2, self.chats))

    def with_reverts(self, rng: random.Random) -> Self:
        """Return this climate, in some runs with users who revert; `rng` is not that of the run."""
        return replace(self, reverts=REVERTS_WEIGHT) if rng.random() < REVERTS else self

    def with_rushes(self, rng: random.Random) -> Self:
        """Return this climate, in some runs with people who answer at once, and late ones.

        `rng` is not that of the run.
        """
        if rng.random() >= RUSHES:
            return self
        deadlines_s = (rng.choice((2.0, 6.0)), rng.choice((3.0, 9.0)), rng.choice((1.0, 5.0)))
        return replace(self, rushes=True, people=RUSHING_PEOPLE, deadlines_s=deadlines_s)
