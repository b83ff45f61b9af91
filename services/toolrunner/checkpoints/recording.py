"""Records changes of files in the store of a workspace; runs in a thread that has the store."""

import asyncio
from dataclasses import dataclass, field

from parley.clock import Clock
from toolrunner.checkpoints.domain import OUTSIDE, Change, Turn
from toolrunner.checkpoints.scan import KeptChange, Limits, Scan, TooManyEntries, new_directories
from toolrunner.checkpoints.store import CheckpointStore
from toolrunner.filesystem.beneath import Root


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


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records which turn changed which files: found by a scan, or about to be made by a tool.

    Attributes:
        clock: The clock of the times of turns.
        limits: How much of a tree a scan reads.
    """

    clock: Clock
    limits: Limits

    def begin(self, store: CheckpointStore, turn: Turn, running: frozenset[str]) -> None:
        """Open a turn again; changes count as its own even if this service is killed."""
        with store.transaction(is_synced=False):
            store.begin(turn, self._now(), is_open=True)
            self._begin_person(store, running)

    def _begin_person(self, store: CheckpointStore, running: frozenset[str]) -> None:
        if OUTSIDE.chat_id in running:
            store.begin(OUTSIDE, self._now(), is_open=True)

    def scan(
        self,
        store: CheckpointStore,
        root: Root,
        running: frozenset[str],
        begun: Turn | None = None,
    ) -> None:
        """Store what open turns changed since the last scan, and open another turn.

        Args:
            store: The store of the workspace.
            root: Its files.
            running: The chats that still change files; an empty id stands for a person.
            begun: The turn whose processes start now.
        """
        authors = store.open_turns()
        try:
            with store.transaction(is_synced=False):
                Scan(store, root, self.limits).run(authors, self._now())
                store.close_turns(running)
                self._begin_person(store, running)
                if begun is not None:
                    store.begin(begun, self._now(), is_open=True)
                is_pruned = store.prune(self._now())
            if is_pruned:
                store.vacuum()
        except TooManyEntries:
            with store.transaction(is_synced=False):
                for turn in [*authors, *([] if begun is None else [begun])]:
                    store.begin(turn, self._now(), is_open=False, is_partial=True)
                store.close_turns(frozenset())

    def keep(
        self, store: CheckpointStore, root: Root, turn: Turn, changes: tuple[KeptChange, ...]
    ) -> None:
        """Store the entries that a file tool is about to change for a turn."""
        number = store.begin(turn, self._now(), is_open=False)
        is_scanned = store.is_scanned()
        for change in (*new_directories(root, changes), *changes):
            before = change.before
            if before is not None and change.content is not None:
                store.put_content(before.etag, change.content)
            if is_scanned:
                self._keep_unseen(store, change)
            store.add_change(number, Change(0, change.path, before, change.after, turn))
            if is_scanned:
                store.put_tree([(change.path, None, change.after)])

    def _keep_unseen(self, store: CheckpointStore, change: KeptChange) -> None:
        """Add what processes did to a path since the last scan, before a tool changes it."""
        known, before = store.tree_entry(change.path), change.before
        if known is None if before is None else before.equals(known):
            return
        authors = store.open_turns() or [OUTSIDE]
        for turn in authors:
            number = store.begin(turn, self._now(), is_open=False)
            unseen = Change(0, change.path, known, before, turn, is_shared=len(authors) > 1)
            store.add_change(number, unseen)

    def _now(self) -> float:
        return self.clock.now().timestamp()
