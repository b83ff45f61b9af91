"""A cache of recently read files, so that not every step of a turn reads them again."""

from collections.abc import Collection, Mapping

from chatd.files.domain.ports import Files
from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.ids import OwnerId
from parley.cache import BoundedCache

KEPT_BYTES_MAX = 64 * 1024 * 1024


class CachedFiles:
    """Caches the most recently used files of a store; files are immutable."""

    def __init__(self, files: Files, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._files = files
        self._kept: BoundedCache[tuple[str, str], FileData] = BoundedCache(
            size_max=kept_bytes_max, size_of=lambda file: len(file.data)
        )

    async def load(self, file_ids: Collection[str], owner_id: OwnerId) -> Mapping[str, FileData]:
        """Return the files of an owner by their ids; deleted files are left out."""
        found = {
            file_id: file
            for file_id in file_ids
            if (file := self._kept.get((owner_id, file_id))) is not None
        }
        missing = [file_id for file_id in file_ids if file_id not in found]
        if missing:
            read = await self._files.load(missing, owner_id)
            for file_id, file in read.items():
                self._kept.put((owner_id, file_id), file)
            found |= read
        return found
