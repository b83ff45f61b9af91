"""The log of a workspace's preparation: stored on disk line by line, and followed by readers."""

import os
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from toolrunner.processes.live_process import ChangeSignal
from toolrunner.workspaces.domain.placement import LogLine

LINES_MAX: Final = 2000
LINE_BYTES_MAX: Final = 4096
FULL: Final = "more was printed than is kept here"


class PreparationLog:
    """The log of one workspace; its lines are numbered from 1 over the life of the workspace.

    Attributes:
        grew: Changes with every line.
        lines: All lines.
    """

    def __init__(self, path: Path) -> None:
        self.grew = ChangeSignal()
        self.lines: list[LogLine] = []
        self._path = path
        self._load()

    def say(self, stage: str, text: str, now: datetime) -> None:
        """Add a line; lines beyond the limit are dropped."""
        if len(self.lines) >= LINES_MAX:
            return
        if len(self.lines) == LINES_MAX - 1:
            text = FULL
        shown = text.encode(errors="replace")[:LINE_BYTES_MAX].decode(errors="ignore")
        line = LogLine(len(self.lines) + 1, now, stage, shown.replace("\0", "\ufffd"))
        self.lines.append(line)
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
        self.grew.changed()

    async def followed(self, after: int, is_over: Callable[[], bool]) -> AsyncIterator[LogLine]:
        """Yield the lines after the first `after` ones, and new ones until the end."""
        sent = after
        while True:
            if sent < len(self.lines):
                sent += 1
                # During the yield lines may be added and the end may come: everything is checked
                # again.
                yield self.lines[sent - 1]
            elif is_over():
                return
            else:
                await self.grew.wait()

    def count(self, stage: str, since: int) -> int:
        """Return how many lines of a stage there are after the first `since` lines."""
        return sum(line.stage == stage for line in self.lines[since:])

    def remove(self) -> None:
        """Remove all lines."""
        self._path.unlink(missing_ok=True)
        self.lines.clear()
        self.grew.changed()

    def _load(self) -> None:
        """Read the lines of an earlier run of the service; the last one may be incomplete."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        whole, _, torn = content.rpartition(b"\n")
        self.lines = [
            msgspec.json.decode(line, type=LogLine) for line in whole.split(b"\n") if line
        ]
        if torn:
            os.truncate(self._path, len(content) - len(torn))
