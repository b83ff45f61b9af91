"""Reads what a turn changed: from what is kept, and from files that are as the turn left them."""

import logging
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from toolrunner.checkpoints.domain import Entry, Turn
from toolrunner.checkpoints.scan import Limits, Scan
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.checkpoints.store import FILE, CheckpointStore, has_store
from toolrunner.checkpoints.turn_files import (
    PATCHES_BYTES_MAX,
    TurnFile,
    TurnFileNotKept,
    TurnFiles,
    files_of,
    has_content,
    with_patch,
)
from toolrunner.filesystem.beneath import Root
from toolrunner.primitives.domain import WorkspaceId

LIMITS: Final = Limits()
#: Of the contents of a file that are compared; longer ones are listed without a patch.
COMPARED_BYTES_MAX: Final = 2 * 1024 * 1024
#: Of all contents that one request reads; the workspace waits meanwhile.
READ_BYTES_MAX: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TurnReader:
    """Reads the files of turns."""

    checkpoints: Checkpoints

    async def files(self, workspace_id: WorkspaceId, turn: Turn, files_max: int) -> TurnFiles:
        """Return the files that a turn changed, with their differences.

        Raises:
            OSError: The files cannot be read.
            sqlite3.Error: The checkpoints cannot be read.
        """

        def work(store: CheckpointStore, root: Root) -> TurnFiles:
            with store.transaction(is_synced=False):
                changed = files_of(store.changes_of(turn))
                listed = _with_patches(store, root, changed[:files_max])
                omitted = max(0, len(changed) - files_max)
                return TurnFiles(tuple(listed), omitted, store.is_partly_known(turn))

        return await self.checkpoints.settled(workspace_id, work)

    async def content(
        self, workspace_id: WorkspaceId, turn: Turn, path: str, *, is_before: bool
    ) -> bytes:
        """Return the content of a file at the end of a turn, or at its start.

        Raises:
            TurnFileNotKept: The turn did not change it, or its content is not kept.
            OSError: The files cannot be read.
            sqlite3.Error: The checkpoints cannot be read.
        """

        def work(store: CheckpointStore, root: Root) -> bytes:
            with store.transaction(is_synced=False):
                for file in files_of(store.changes_of(turn)):
                    entry = file.before if is_before else file.after
                    if file.path == path and has_content(entry):
                        before, after = _contents_of(store, root, file)
                        content = before if is_before else after
                        if content is not None:
                            return content
            raise TurnFileNotKept

        return await self.checkpoints.settled(workspace_id, work)


def _with_patches(store: CheckpointStore, root: Root, files: list[TurnFile]) -> list[TurnFile]:
    listed: list[TurnFile] = []
    room_bytes, unread_bytes = PATCHES_BYTES_MAX, READ_BYTES_MAX
    for file in files:
        entries = [entry for entry in (file.before, file.after) if entry is not None]
        is_short = sum(store.sizes(each.etag for each in entries).values()) <= COMPARED_BYTES_MAX
        if is_short and room_bytes > 0 and unread_bytes > 0:
            before, after = _contents_of(store, root, file)
            shown = with_patch(file, before, after)
            room_bytes -= len(shown.patch.encode(errors="replace"))
            unread_bytes -= len(before or b"") + len(after or b"")
        else:
            is_kept = has_content(file.after) and file.after is not None and file.after.is_kept
            shown = replace(file, is_readable=is_kept)
        listed.append(shown)
    return listed


def _contents_of(
    store: CheckpointStore, root: Root, file: TurnFile
) -> tuple[bytes | None, bytes | None]:
    """Return the contents of a file before and after its turn; None for one that is not kept."""

    def stored(entry: Entry | None) -> bytes | None:
        return store.content(entry.etag) if entry is not None and has_content(entry) else b""

    if stored(file.after) is None:
        # Only what was changed again is stored; what is still there is read.
        Scan(store, root, LIMITS).look(file.path)
    return stored(file.before), stored(file.after)


logger = logging.getLogger(__name__)


def newest_turn_id(directory: Path, chat_id: str) -> int:
    """Return the newest turn of a chat that changed files or ran processes; 0 if none is known.

    Args:
        directory: The directory of the workspace.
        chat_id: The chat.
    """
    if not has_store(directory):
        return 0
    try:
        address = f"{(directory / FILE).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=10)) as connection:
            row = connection.execute(
                "SELECT coalesce(max(turn_id), 0) FROM turns WHERE chat_id = ?", (chat_id,)
            ).fetchone()
            return int(row[0])
    except sqlite3.Error as error:
        logger.warning("the turns of a workspace could not be read: %s", error)
        return 0
