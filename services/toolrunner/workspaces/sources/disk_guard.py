"""Disk limits on files that the node itself makes for a workspace.

Theory: a small source can expand to many files. One file with a thousand hard links is copied a
thousand times, and a repository of a few trees that reference one another is checked out as
millions of files. The node writes those itself, and its own programs are not covered by the quotas
of workspaces; so their output is measured here.
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
    """Run work that fills a directory, and cancel it when that exceeds a quota.

    Raises:
        QuotaExceeded: It was cancelled.
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
