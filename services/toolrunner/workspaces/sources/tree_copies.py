"""Copies of directory trees, which may take minutes, in threads of their own."""

import asyncio
import os
import threading
from pathlib import Path

from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.copy import Copied, copy_tree
from toolrunner.filesystem.trash import PRIVATE
from toolrunner.primitives.domain import Quota
from toolrunner.primitives.threads import OwnThreads
from toolrunner.quotas.disk import passed
from toolrunner.workspaces.merge.fork_base import copy_with_base
from toolrunner.workspaces.sources.copy_places import COPIES_MAX, CopyPlaces


class OriginalGone(Exception):
    """What was copied was removed meanwhile."""


class _Unwanted(Exception):
    """The copy was cancelled."""


class TreeCopies:
    """Copies trees, a few at a time."""

    def __init__(self) -> None:
        self._threads = OwnThreads("copies", COPIES_MAX)
        # A copy that waits for a place is cancelled at once.
        self._places = CopyPlaces()

    async def copy(
        self,
        source: Path,
        target: Path,
        base: Path | None,
        quota: Quota,
        owner: int | None = None,
        *,
        user_id: str,
    ) -> Copied:
        """Copy a tree; if cancelled, the thread ends before this returns.

        Args:
            source: The tree.
            target: Its copy, which does not exist yet.
            base: Where to remember how the copy was made; None for nowhere.
            quota: What the copy may use.
            owner: The user of the system whose it is; None for the user of the service.
            user_id: The user for whom it is made.

        Raises:
            QuotaExceeded: The copy would use more.
            OriginalGone: The tree was removed meanwhile.
            OSError: It cannot be copied.
        """
        is_unwanted = threading.Event()

        def check(copied: Copied) -> None:
            if is_unwanted.is_set():
                raise _Unwanted
            if (problem := passed(quota, copied.disk_bytes, copied.entries)) is not None:
                raise problem

        def work() -> Copied:
            target.mkdir(mode=PRIVATE)
            if owner is not None:
                # First, so that no other workspace gets this user meanwhile.
                os.chown(target, owner, owner)
            original = Root.open_directory(str(source))
            try:
                copy = Root.open_directory(str(target))
                try:
                    if base is None:
                        return copy_tree(original, copy, check=check)
                    copied = copy_with_base(original, copy, base, check, owner)
                    if os.fstat(original.fd).st_ino != os.stat(source).st_ino:
                        raise OriginalGone
                    return copied
                finally:
                    copy.close()
            finally:
                original.close()

        async with self._places.held(user_id):
            copying = self._threads.start(work)
            try:
                return await asyncio.shield(copying)
            except asyncio.CancelledError:
                is_unwanted.set()
                await asyncio.wait([copying])
                copying.exception()
                raise
