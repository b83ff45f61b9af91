"""Temporary directories of processes that may only read, where none can be mounted for them.

Each process has its own, and it goes with the process: it is renamed into the trash before the exit
is published, and removed there. The rules of Landlock follow the directory, so descendants that are
left cannot create another one.
"""

import logging
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolrunner.directories.workspaces import PASSABLE, PRIVATE, Workspace, Workspaces
from toolrunner.filesystem.trash import Trash
from toolrunner.journal.records import ProcessRecord
from toolrunner.primitives.domain import ProcessId
from toolrunner.sandbox import Layer, Profile

TRASH: Final = "trash"

logger = logging.getLogger(__name__)


def make_scratch(workspace: Workspace, process_id: ProcessId) -> Path:
    """Create the temporary directory of a process, for the user of the workspace.

    Raises:
        OSError: It cannot be created.
    """
    workspace.scratch.mkdir(exist_ok=True)
    workspace.scratch.chmod(PASSABLE)
    place = workspace.scratch / process_id
    place.mkdir(mode=PRIVATE)
    owner = workspace.root.stat().st_uid
    if owner != os.geteuid():
        os.chown(place, owner, owner)
    return place


def is_reader(record: ProcessRecord) -> bool:
    """Return whether a process may only read."""
    return record.sandbox is not None and record.sandbox.profile is Profile.READ_ONLY


@dataclass(frozen=True, slots=True)
class ScratchDirectories:
    """Removes the temporary directories of processes that ended."""

    workspaces: Workspaces

    def throw(self, record: ProcessRecord) -> bool:
        """Move the directory of a process to the trash; return whether it had one."""
        used = record.sandbox
        if used is None or not is_reader(record) or Layer.MOUNT_NAMESPACE in used.layers:
            return False
        scratch = self.workspaces.at(record.workspace_id).scratch
        try:
            return Trash(scratch / TRASH).throw(scratch / record.process_id)
        except FileNotFoundError:
            # Its workspace was removed, with this directory.
            return False
        except OSError as error:
            logger.warning("a temporary directory stays until the next start: %s", error)
            return False

    def empty(self, record: ProcessRecord) -> None:
        """Remove what was moved to the trash of a workspace."""
        _empty(self.workspaces.at(record.workspace_id).scratch)

    def sweep(self, live: Collection[ProcessId]) -> None:
        """Remove the directories of processes that do not run, of all workspaces."""
        for scratch in self.workspaces.scratches():
            for place in scratch.iterdir():
                if place.name != TRASH and place.name not in live:
                    with suppress(OSError):
                        Trash(scratch / TRASH).throw(place)
            _empty(scratch)


def _empty(scratch: Path) -> None:
    try:
        Trash(scratch / TRASH).empty()
    except OSError as error:
        logger.warning("a temporary directory stays until the next start: %s", error)
