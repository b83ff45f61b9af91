"""Long work in one thread: it says when it waits or pauses, so that others get their turn."""

import select
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from toolrunner.fileworker.protocol import Answer


@dataclass(frozen=True, slots=True)
class Readable:
    """Go on when something can be read, or when the time is over.

    Attributes:
        fd: What to read from.
        until_s: Time of the monotonic clock.
    """

    fd: int
    until_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Go on after others had their turn."""


PAUSE = Pause()

#: Yields pieces of a stream, and pauses in between; returns the last answer.
Job = Generator[Readable | Pause | Answer, None, Answer]


def pieces(job: Job) -> Iterator[Answer]:
    """Do a job here and now: yield the pieces of its stream, its last answer included."""
    while True:
        try:
            said = next(job)
        except StopIteration as end:
            yield end.value
            return
        match said:
            case Readable(fd, until_s):
                select.select([fd], [], [], max(0.0, until_s - time.monotonic()))
            case Pause():
                pass
            case _:
                yield said
