"""Reads the bytes of files for the turns of their owners."""

from collections.abc import Collection, Mapping

from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.ids import OwnerId
from parley.postgres import Pool, typed_outages

# Files of an owner with their bytes.
# May run: owner.
SELECT_FILE_BYTES = """
    SELECT id, name, media_type, data FROM chat.files
    WHERE id = ANY ($1::uuid[]) AND owner_id = $2
"""


class PostgresFiles:
    """Files in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def load(self, file_ids: Collection[str], owner_id: OwnerId) -> Mapping[str, FileData]:
        """Return the files of an owner by their ids; deleted files are left out."""
        with typed_outages():
            rows = await self._pool.fetch(SELECT_FILE_BYTES, list(file_ids), owner_id)
        return {
            str(row["id"]): FileData(row["name"], row["media_type"], row["data"]) for row in rows
        }
