"""The checkpoints of one workspace, in a SQLite file beside its other private files.

Contents are stored once each, under their etag. A file that cannot be read as a database is moved
away, because checkpoints are never worth more than the work they would hold up.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from toolrunner.checkpoints.domain import NO_AGENTS, OUTSIDE, Change, Entry, Outcome, Step, Turn
from toolrunner.checkpoints.schema import DELETE_UNUSED, SCHEMA

FILE: Final = "checkpoints.sqlite"
AGE_S: Final = 14 * 24 * 3600.0
TURNS_MAX: Final = 200
BYTES_MAX: Final = 512 * 1024 * 1024
#: The share of the turns that is dropped at once if there are too many bytes.
DROPPED_SHARE: Final = 10
_OUTSIDE_NUMBER: Final = 0


@dataclass(frozen=True, slots=True)
class Restore:
    """A restore that was planned.

    Attributes:
        restore_id: Its id.
        turn: The first turn that it takes back.
        undoes: The restore that it takes back instead; empty for none.
        is_done: Whether it was carried out.
        steps: The paths.
    """

    restore_id: str
    turn: Turn
    undoes: str
    is_done: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept for one workspace."""

    age_s: float = AGE_S
    turns_max: int = TURNS_MAX
    bytes_max: int = BYTES_MAX


@dataclass(frozen=True, slots=True)
class CheckpointStore:
    """An open file; for one thread at a time.

    Attributes:
        connection: The database.
        bounds: How much is kept.
        inode: The inode of the file.
    """

    connection: sqlite3.Connection
    bounds: Bounds
    inode: int | None

    @classmethod
    def open(cls, directory: Path, bounds: Bounds) -> "CheckpointStore":
        """Open or create the file of a workspace.

        Raises:
            sqlite3.Error: It cannot be written.
            OSError: It cannot be read.
        """
        path = directory / FILE
        try:
            connection = _connected(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            os.replace(path, path.with_suffix(".unreadable"))
            connection = _connected(path)
        return cls(connection, bounds, _inode_of(path))

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def is_of(self, directory: Path) -> bool:
        """Return whether the file is still the one of a workspace, which may have been removed."""
        return _inode_of(directory / FILE) == self.inode

    @contextmanager
    def transaction(self, *, is_synced: bool) -> Iterator[None]:
        """Commit all writes of the context together.

        Args:
            is_synced: Whether they must outlive a power failure; they outlive the process anyway.
        """
        self.connection.execute(f"PRAGMA synchronous = {'FULL' if is_synced else 'NORMAL'}")
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def is_scanned(self) -> bool:
        """Return whether the whole tree is known."""
        return self.connection.execute("SELECT 1 FROM scans").fetchone() is not None

    def set_scanned(self, at: float) -> None:
        """Record that the whole tree was read."""
        self.connection.execute("DELETE FROM scans")
        self.connection.execute("INSERT INTO scans VALUES (?)", (at,))

    def tree(self) -> dict[bytes, tuple[bytes | None, bytes]]:
        """Return the entries of the last scan, encoded, with what identifies their versions."""
        rows = self.connection.execute("SELECT path, identity, entry FROM tree")
        return {path: (identity, entry) for path, identity, entry in rows}

    def tree_entry(self, path: str) -> Entry | None:
        """Return the entry of a path as of the last scan."""
        row = self.connection.execute(
            "SELECT entry FROM tree WHERE path = ?", (os.fsencode(path),)
        ).fetchone()
        return None if row is None else decoded(row[0])

    def put_tree(self, rows: Iterable[tuple[str, bytes | None, Entry | None]]) -> None:
        """Replace entries of the tree; those of None are removed."""
        for path, identity, entry in rows:
            name = os.fsencode(path)
            if entry is None:
                self.connection.execute("DELETE FROM tree WHERE path = ?", (name,))
            else:
                self.connection.execute(
                    "INSERT OR REPLACE INTO tree VALUES (?, ?, ?, ?)",
                    (name, identity, msgspec.msgpack.encode(entry), entry.etag),
                )

    def put_content(self, etag: str, content: bytes) -> None:
        """Store a content, unless it is stored."""
        self.connection.execute(
            "INSERT OR IGNORE INTO objects VALUES (?, ?, ?)", (etag, len(content), content)
        )

    def content(self, etag: str) -> bytes | None:
        """Return a stored content."""
        row = self.connection.execute(
            "SELECT content FROM objects WHERE etag = ?", (etag,)
        ).fetchone()
        return None if row is None else row[0]

    def sizes(self, etags: Iterable[str]) -> dict[str, int]:
        """Return the sizes of stored contents."""
        found = {}
        for etag in etags:
            row = self.connection.execute(
                "SELECT size FROM objects WHERE etag = ?", (etag,)
            ).fetchone()
            if row is not None:
                found[etag] = row[0]
        return found

    def stored_bytes(self) -> int:
        """Return the size of all contents."""
        found: int = self.connection.execute("SELECT total(size) FROM objects").fetchone()[0]
        return int(found)

    def begin(self, turn: Turn, at: float, *, is_open: bool, is_partial: bool = False) -> int:
        """Add a turn, unless it is known; return its number."""
        if turn == OUTSIDE:
            self.connection.execute(
                "UPDATE turns SET is_open = max(is_open, ?) WHERE number = ?",
                (is_open, _OUTSIDE_NUMBER),
            )
            return _OUTSIDE_NUMBER
        self.connection.execute(
            "INSERT INTO turns (chat_id, turn_id, begun_at, is_open, is_partial) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "is_open = max(is_open, excluded.is_open), "
            "is_partial = max(is_partial, excluded.is_partial)",
            (turn.chat_id, turn.turn_id, at, is_open, is_partial),
        )
        row = self.connection.execute(
            "SELECT number FROM turns WHERE chat_id = ? AND turn_id = ?",
            (turn.chat_id, turn.turn_id),
        ).fetchone()
        return int(row[0])

    def open_turns(self) -> list[Turn]:
        """Return the last turn of each chat whose processes may have changed files."""
        rows = self.connection.execute(
            "SELECT chat_id, max(turn_id) FROM turns WHERE is_open GROUP BY chat_id"
        )
        return [Turn(chat_id, turn_id) for chat_id, turn_id in rows]

    def close_turns(self, running: frozenset[str]) -> None:
        """Close all turns, except those of chats with running processes."""
        for turn in self.open_turns():
            latest = turn.turn_id if turn.chat_id in running else -1
            self.connection.execute(
                "UPDATE turns SET is_open = 0 WHERE chat_id = ? AND turn_id <> ?",
                (turn.chat_id, latest),
            )

    def add_change(self, number: int, change: Change) -> None:
        """Add a change to a turn."""
        before, after = change.before, change.after
        self.connection.execute(
            "INSERT INTO changes (turn, path, before, after, before_etag, is_shared) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                number,
                os.fsencode(change.path),
                _encoded(before),
                _encoded(after),
                None if before is None else before.etag,
                change.is_shared,
            ),
        )

    def changes_since(self, turn: Turn, agents: frozenset[str] = NO_AGENTS) -> list[Change]:
        """Return the changes of all paths that a chat changed in a turn or later, in order.

        Args:
            turn: The turn.
            agents: The agents that the chat started since.
        """
        rows = self.connection.execute(
            "SELECT c.sequence, c.path, c.before, c.after, t.chat_id, t.turn_id, c.is_shared "
            "FROM changes c JOIN turns t ON t.number = c.turn "
            "WHERE t.restore_id = '' AND c.path IN ("
            "SELECT own.path FROM changes own JOIN turns o ON o.number = own.turn "
            "WHERE (o.chat_id = ? AND o.turn_id >= ? OR o.chat_id IN "
            "(SELECT value FROM json_each(?))) AND o.restore_id = '') ORDER BY c.sequence",
            (turn.chat_id, turn.turn_id, _listed(agents)),
        )
        return [
            Change(
                sequence,
                os.fsdecode(path),
                decoded(before),
                decoded(after),
                Turn(chat_id, turn_id),
                bool(is_shared),
            )
            for sequence, path, before, after, chat_id, turn_id, is_shared in rows
        ]

    def changes_of(self, turn: Turn) -> list[Change]:
        """Return the changes of one turn that was not taken back, in order."""
        rows = self.connection.execute(
            "SELECT c.sequence, c.path, c.before, c.after, c.is_shared "
            "FROM changes c JOIN turns t ON t.number = c.turn "
            "WHERE t.chat_id = ? AND t.turn_id = ? AND t.restore_id = '' ORDER BY c.sequence",
            (turn.chat_id, turn.turn_id),
        )
        return [
            Change(
                sequence, os.fsdecode(path), decoded(before), decoded(after), turn, bool(is_shared)
            )
            for sequence, path, before, after, is_shared in rows
        ]

    def is_partly_known(self, turn: Turn) -> bool:
        """Return whether changes of one turn are not stored, or not any more."""
        row = self.connection.execute(
            "SELECT EXISTS (SELECT 1 FROM pruned WHERE chat_id = ?1 AND turn_id >= ?2) OR EXISTS "
            "(SELECT 1 FROM turns WHERE chat_id = ?1 AND turn_id = ?2 AND is_partial)",
            (turn.chat_id, turn.turn_id),
        ).fetchone()
        return bool(row[0])

    def is_incomplete(self, turn: Turn, agents: frozenset[str] = NO_AGENTS) -> bool:
        """Return whether changes of a chat since a turn are not stored, or not any more."""
        is_own = "(chat_id = ?1 AND turn_id >= ?2 OR chat_id IN (SELECT value FROM json_each(?3)))"
        row = self.connection.execute(
            f"SELECT EXISTS (SELECT 1 FROM pruned WHERE {is_own}) "
            f"OR EXISTS (SELECT 1 FROM turns WHERE {is_own} AND is_partial)",
            (turn.chat_id, turn.turn_id, _listed(agents)),
        ).fetchone()
        return bool(row[0])

    def plan(
        self, restore_id: str, turn: Turn, undoes: str, steps: Iterable[Step], at: float
    ) -> None:
        """Store the plan of a restore."""
        self.connection.execute(
            "INSERT INTO restores (restore_id, chat_id, turn_id, undoes, planned_at) "
            "VALUES (?, ?, ?, ?, ?)",
            (restore_id, turn.chat_id, turn.turn_id, undoes, at),
        )
        self.connection.executemany(
            "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    restore_id,
                    os.fsencode(step.path),
                    _encoded(step.found),
                    _encoded(step.target),
                    None if step.found is None else step.found.etag,
                    None if step.target is None else step.target.etag,
                    step.outcome,
                )
                for step in steps
            ],
        )

    def restore(self, restore_id: str) -> Restore | None:
        """Return a restore that was planned."""
        row = self.connection.execute(
            "SELECT chat_id, turn_id, undoes, is_done FROM restores WHERE restore_id = ?",
            (restore_id,),
        ).fetchone()
        if row is None:
            return None
        chat_id, turn_id, undoes, is_done = row
        rows = self.connection.execute(
            "SELECT path, found, target, outcome FROM steps WHERE restore_id = ? ORDER BY path",
            (restore_id,),
        )
        steps = tuple(
            Step(os.fsdecode(path), decoded(found), decoded(target), Outcome(outcome))
            for path, found, target, outcome in rows
        )
        return Restore(restore_id, Turn(chat_id, turn_id), undoes, bool(is_done), steps)

    def finish(
        self, restore: Restore, steps: Iterable[Step], agents: frozenset[str] = NO_AGENTS
    ) -> None:
        """Record what a restore did, and that its turns are taken back, or again are not."""
        self.connection.executemany(
            "UPDATE steps SET outcome = ? WHERE restore_id = ? AND path = ?",
            [(step.outcome, restore.restore_id, os.fsencode(step.path)) for step in steps],
        )
        self.connection.execute(
            "UPDATE restores SET is_done = 1 WHERE restore_id = ?", (restore.restore_id,)
        )
        if restore.undoes:
            self.connection.execute(
                "UPDATE turns SET restore_id = '' WHERE restore_id = ?", (restore.undoes,)
            )
        else:
            self.connection.execute(
                "UPDATE turns SET restore_id = ?, is_open = 0 "
                "WHERE (chat_id = ? AND turn_id >= ? OR chat_id IN "
                "(SELECT value FROM json_each(?))) AND restore_id = ''",
                (
                    restore.restore_id,
                    restore.turn.chat_id,
                    restore.turn.turn_id,
                    _listed(agents),
                ),
            )

    def prune(self, now: float) -> bool:
        """Drop the oldest turns beyond the bounds, and contents that nothing refers to.

        Returns whether there were any.
        """
        oldest = self._oldest()
        surplus = max(0, len(oldest) - self.bounds.turns_max)
        dropped = [
            number
            for place, (number, begun_at) in enumerate(oldest)
            if place < surplus or begun_at < now - self.bounds.age_s
        ]
        rest = [number for number, _ in oldest if number not in set(dropped)]
        if not dropped and self.stored_bytes() <= self.bounds.bytes_max:
            return False
        self._drop(dropped, now)
        while rest and self.stored_bytes() > self.bounds.bytes_max:
            share = max(1, len(rest) // DROPPED_SHARE)
            self._drop(rest[:share], now)
            rest = rest[share:]
        return True

    def vacuum(self) -> None:
        """Give unused pages back to the file system; outside of a transaction."""
        self.connection.execute("PRAGMA incremental_vacuum").fetchall()

    def _oldest(self) -> list[tuple[int, float]]:
        return self.connection.execute(
            "SELECT number, begun_at FROM turns WHERE number > 0 AND NOT is_open ORDER BY number"
        ).fetchall()

    def _drop(self, numbers: list[int], now: float) -> None:
        execute, many = self.connection.execute, self.connection.executemany
        each = [(number,) for number in numbers]
        many(
            "INSERT INTO pruned SELECT chat_id, turn_id FROM turns WHERE number = ? "
            "ON CONFLICT DO UPDATE SET turn_id = max(turn_id, excluded.turn_id)",
            each,
        )
        many("DELETE FROM changes WHERE turn = ?", each)
        many("DELETE FROM turns WHERE number = ?", each)
        # A change outside of turns matters only while an older one of a turn is kept.
        execute(
            "DELETE FROM changes WHERE turn = 0 AND sequence < "
            "(SELECT coalesce(min(sequence), 9e18) FROM changes WHERE turn > 0)"
        )
        old = (now - self.bounds.age_s,)
        execute(
            "DELETE FROM steps WHERE restore_id IN "
            "(SELECT restore_id FROM restores WHERE planned_at < ?)",
            old,
        )
        execute("DELETE FROM restores WHERE planned_at < ?", old)
        execute(DELETE_UNUSED)


def has_store(directory: Path) -> bool:
    """Return whether anything was kept of a workspace."""
    return (directory / FILE).exists()


def _connected(path: Path) -> sqlite3.Connection:
    # Used by one thread at a time, though not always by the same one.
    connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            # Nothing is lost with a file that a power failure leaves without tables.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN; {SCHEMA}; COMMIT")
        connection.execute("PRAGMA journal_size_limit = 4194304")
    except BaseException:
        connection.close()
        raise
    return connection


def _inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _listed(agents: frozenset[str]) -> str:
    return msgspec.json.encode(sorted(agents)).decode()


def _encoded(entry: Entry | None) -> bytes | None:
    return None if entry is None else msgspec.msgpack.encode(entry)


def decoded(data: bytes | None) -> Entry | None:
    """Return an encoded entry; None if there is none."""
    return None if data is None else msgspec.msgpack.decode(data, type=Entry)
