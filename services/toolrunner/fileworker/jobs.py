"""Cooperative jobs in one thread: a generator yields when it waits or pauses."""

import select
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from toolrunner.fileworker.protocol import Answer


@dataclass(frozen=True, slots=True)
class Readable:
    """Continue when a descriptor is readable, or at the deadline.

    Attributes:
        fd: The descriptor.
        until_s: Time of the monotonic clock.
    """

    fd: int
    until_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Continue after other jobs have run."""


PAUSE = Pause()

#: Yields parts of a stream, and pauses in between; returns the last answer.
Job = Generator[Readable | Pause | Answer, None, Answer]


def pieces(job: Job) -> Iterator[Answer]:
    """Run a job to its end: yield the parts of its stream, its last answer included."""
    while True:
        try:
            output = next(job)
        except StopIteration as end:
            yield end.value
            return
        match output:
            case Readable(fd, until_s):
                select.select([fd], [], [], max(0.0, until_s - time.monotonic()))
            case Pause():
                pass
            case _:
                yield output
