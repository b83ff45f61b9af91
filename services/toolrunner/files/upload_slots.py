"""Limits on concurrent uploads, per workspace and per node."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.primitives.domain import WorkspaceId

UPLOADS_MAX: Final = 64
UPLOADS_PER_WORKSPACE_MAX: Final = 8


@dataclass
class UploadSlots:
    """The slots of uploads; each holds a file and a call open."""

    _taken: Counter[WorkspaceId] = field(default_factory=Counter)

    @contextmanager
    def place(self, workspace_id: WorkspaceId) -> Iterator[None]:
        """Take a slot in a context.

        Raises:
            FileRefused: All slots of this workspace, or of the node, are taken.
        """
        if self._taken[workspace_id] >= UPLOADS_PER_WORKSPACE_MAX:
            raise _full(f"this workspace has {UPLOADS_PER_WORKSPACE_MAX} uploads already")
        if self._taken.total() >= UPLOADS_MAX:
            raise _full(f"this node has {UPLOADS_MAX} uploads already")
        self._taken[workspace_id] += 1
        try:
            yield
        finally:
            self._taken[workspace_id] -= 1
            if not self._taken[workspace_id]:
                del self._taken[workspace_id]


def _full(why: str) -> FileRefused:
    text = f"{why}; try again when one is through"
    return FileRefused(Reason.NODE_FULL, text, resource="uploads")
