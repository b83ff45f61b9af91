"""Bounds on what the node itself makes for a workspace: no more than the workspace may have.

Theory: what is small where it is kept can be large where it is made. One file with a thousand names
is copied a thousand times, and a repository of a few trees that name one another is checked out as
millions of files. The node writes those itself, and nobody looks at its own programs; so it looks
at what comes of them.
"""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from parley.clock import Clock
from toolrunner.filesystem.disk_usage import walked
from toolrunner.primitives.domain import Quota
from toolrunner.quotas.disk import Space, Use, is_due, overrun

T = TypeVar("T")

LOOK_S: Final = 0.5
ENTRIES_MAX: Final = 10_000_000


async def within_disk_limit(
    quota: Quota, directory: Path, clock: Clock, work: Coroutine[Any, Any, T]
) -> T:
    """Do what fills a directory, and give it up when that is more than a quota allows.

    Raises:
        QuotaExceeded: It was given up.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_watch(quota, directory, clock))
            doing = tasks.create_task(work)
            doing.add_done_callback(lambda _: watching.cancel())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return doing.result()


async def _watch(quota: Quota, directory: Path, clock: Clock) -> None:
    use: Use | None = None
    while True:
        await clock.sleep(LOOK_S)
        space = Space.of(directory.parent)
        started_s = clock.monotonic()
        if not is_due(use, quota, space, started_s):
            continue
        found = await asyncio.to_thread(
            walked,
            (str(directory),),
            entries_max=quota.inodes + 1 if quota.inodes else ENTRIES_MAX,
        )
        now_s = clock.monotonic()
        is_partial = found.unread > 0
        use = Use(found.disk_bytes, found.inodes, space, now_s, now_s - started_s, is_partial)
        if (problem := overrun(use, quota)) is not None:
            raise problem
