"""Files as uploaded, downloaded and read by turns; every statement checks authorisation."""

from collections.abc import Collection, Mapping
from hashlib import sha256

import asyncpg

from chatd.chats.domain.views import StoredFile
from chatd.chats.store.attachments import INSERT_FILE
from chatd.chats.store.view_rows import READABLE
from chatd.content.domain.errors import FileNotFound
from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.errors import RequestIdReused
from chatd.primitives.domain.ids import OwnerId
from chatd.primitives.domain.requests import Reader
from parley.postgres import Pool

COLUMNS = """
    f.id, f.owner_id, f.name, f.media_type, octet_length(f.data) AS size_bytes, f.sha256,
    f.created_at
"""

# A reader sees their own files and the files of chats that they may read.
VISIBLE = f"""
    f.id = $1 AND (f.owner_id = $2 OR EXISTS (
        SELECT 1 FROM chat.chat_files held JOIN chat.chats c ON c.id = held.chat_id
        WHERE held.file_id = f.id AND {READABLE}))
"""

# A file of an owner.
# May run: owner.
SELECT_OWN = f"SELECT {COLUMNS} FROM chat.files f WHERE f.id = $1 AND f.owner_id = $2"

# Files of an owner, in the order of their ids.
# May run: owner.
SELECT_ALL_OWN = f"""
    SELECT {COLUMNS} FROM chat.files f WHERE f.owner_id = $1 AND f.id > $2 ORDER BY f.id LIMIT $3
"""

# A file, for a reader.
# May run: reader.
SELECT_VISIBLE = f"SELECT {COLUMNS} FROM chat.files f WHERE {VISIBLE}"

# A byte range of a file, for a reader.
# May run: reader.
SELECT_RANGE = f"""
    SELECT substring(f.data FROM $4 FOR $5) FROM chat.files f WHERE {VISIBLE}
"""

# Files of an owner with their bytes.
# May run: owner.
SELECT_FILE_BYTES = """
    SELECT id, name, media_type, data FROM chat.files
    WHERE id = ANY ($1::uuid[]) AND owner_id = $2
"""


class StoredFiles:
    """Files in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def own(self, owner_id: OwnerId, after: str, files_max: int) -> tuple[StoredFile, ...]:
        """Return files of an owner behind an id, without their bytes."""
        rows = await self._pool.fetch(SELECT_ALL_OWN, owner_id, after, files_max)
        return tuple(map(_file_of, rows))

    async def put(
        self, file_id: str, owner_id: OwnerId, file: FileData, *, request_id: str
    ) -> StoredFile:
        """Store a file under the id derived from its request; a retry is idempotent.

        Raises:
            RequestIdReused: another file was stored with this request id before.
        """
        digest = sha256(file.data).digest()
        await self._pool.execute(
            INSERT_FILE, file_id, owner_id, file.name, file.media_type, digest, file.data
        )
        row = await self._pool.fetchrow(SELECT_OWN, file_id, owner_id)
        if row is None:
            raise FileNotFound(file_id)
        stored = _file_of(row)
        if (stored.name, stored.media_type, stored.sha256) != (file.name, file.media_type, digest):
            raise RequestIdReused(request_id)
        return stored

    async def get(self, file_id: str, reader: Reader) -> StoredFile:
        """Return the metadata of a file.

        Raises:
            FileNotFound: there is none for this reader.
        """
        row = await self._pool.fetchrow(SELECT_VISIBLE, file_id, reader.id, reader.group_ids)
        if row is None:
            raise FileNotFound(file_id)
        return _file_of(row)

    async def read_range(
        self, file_id: str, reader: Reader, *, offset_bytes: int, length_bytes: int
    ) -> bytes:
        """Return a byte range of a file, shorter at its end.

        Raises:
            FileNotFound: there is none for this reader, or no longer.
        """
        data = await self._pool.fetchval(
            SELECT_RANGE, file_id, reader.id, reader.group_ids, offset_bytes + 1, length_bytes
        )
        if data is None:
            raise FileNotFound(file_id)
        return bytes(data)


def _file_of(row: asyncpg.Record) -> StoredFile:
    return StoredFile(
        id=str(row["id"]),
        owner_id=OwnerId(str(row["owner_id"])),
        name=row["name"],
        media_type=row["media_type"],
        size_bytes=row["size_bytes"],
        sha256=row["sha256"],
        created_at=row["created_at"],
    )


class PostgresFiles:
    """Files in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def load(self, file_ids: Collection[str], owner_id: OwnerId) -> Mapping[str, FileData]:
        """Return the files of an owner by their ids; deleted files are left out."""
        rows = await self._pool.fetch(SELECT_FILE_BYTES, list(file_ids), owner_id)
        return {
            str(row["id"]): FileData(row["name"], row["media_type"], row["data"]) for row in rows
        }
