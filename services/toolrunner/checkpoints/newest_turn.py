"""The newest turn in which a chat worked in a workspace, read beside the store of checkpoints."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

from toolrunner.checkpoints.store import FILE, has_store

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
