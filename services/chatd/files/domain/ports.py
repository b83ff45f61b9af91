"""The port through which turns read files."""

from collections.abc import Collection, Mapping
from typing import Protocol

from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.ids import OwnerId


class Files(Protocol):
    """Files that messages refer to."""

    async def load(self, file_ids: Collection[str], owner_id: OwnerId) -> Mapping[str, FileData]:
        """Return the files of an owner by their ids; deleted files are left out."""
        ...
