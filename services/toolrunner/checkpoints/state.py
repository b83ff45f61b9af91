"""What is known of the checkpoints of one workspace in this run of the service."""

import asyncio
from dataclasses import dataclass, field

from toolrunner.checkpoints.domain import Turn
from toolrunner.checkpoints.store import CheckpointStore


@dataclass
class WorkspaceState:
    """The state of one workspace.

    Attributes:
        lock: Held while its store is used.
        turns: The turns that have begun processes.
        open_turns: Those of them whose processes may have changed files since the last scan.
        is_dirty: Whether processes ran since the last scan.
        has_ended: Whether one ended since.
        has_person: Whether a person began to change files since.
        scanned_s: When the last scan ended.
        took_s: How long it took.
        store: The store; open from its first use on.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    turns: set[Turn] = field(default_factory=set)
    open_turns: set[Turn] = field(default_factory=set)
    is_dirty: bool = False
    has_ended: bool = False
    has_person: bool = False
    scanned_s: float = 0.0
    took_s: float = 0.0
    store: CheckpointStore | None = None

    def begin(self, turn: Turn) -> None:
        """Count a turn as an author of changes from now on."""
        self.turns.add(turn)
        self.open_turns.add(turn)
        self.is_dirty = True

    def scanned(self, running: frozenset[str], now_s: float) -> None:
        """Record a scan: authors without running processes have changed what they changed."""
        self.open_turns = {each for each in self.open_turns if each.chat_id in running}
        self.has_person = False
        self.scanned_s = now_s

    def close(self) -> None:
        """Close the store, which opens again at its next use."""
        if self.store is not None:
            self.store.close()
            self.store = None
