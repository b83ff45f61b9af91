"""Files that messages refer to: ownership, and links to chats."""

from collections.abc import Mapping
from hashlib import sha256

import asyncpg

from chatd.chats.domain.views import FILES_MAX
from chatd.chats.store.owner_claims import hold_claim
from chatd.content.domain.errors import FileNotFound, TooManyFiles
from chatd.content.domain.parts import File
from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerClaim, OwnerId
from chatd.primitives.store.constraints import Constraint
from parley.postgres import Pool

# Files of an owner.
# May run: owner.
SELECT_FILES = """
    SELECT id, media_type, name FROM chat.files WHERE id = ANY ($1::uuid[]) AND owner_id = $2
"""

# A chat, for its owner, locked against concurrent links of other files.
# May run: owner.
LOCK_HOLDER = "SELECT id FROM chat.chats WHERE id = $1 AND owner_id = $2 FOR NO KEY UPDATE"

# How many files are linked to a chat beside some; the owner was checked.
# May run: checked by LOCK_HOLDER.
COUNT_OTHERS = """
    SELECT count(*) FROM chat.chat_files WHERE chat_id = $1 AND file_id <> ALL ($2::uuid[])
"""

# Link existing files to a chat; owners of both were checked.
# May run: checked by LOCK_HOLDER.
INSERT_LINKS = """
    INSERT INTO chat.chat_files (chat_id, file_id) SELECT $1, unnest($2::uuid[])
    ON CONFLICT DO NOTHING
"""

# A file that a chat made; the same one may be inserted twice.
# May run: owner.
INSERT_FILE = """
    INSERT INTO chat.files (id, owner_id, name, media_type, sha256, data, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, now()) ON CONFLICT (id) DO NOTHING
"""


class Attachments:
    """Files of chats in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self, file_ids: tuple[str, ...], *, owner_id: OwnerId) -> Mapping[str, File]:
        """Return the files that exist for this owner by their ids, described as they are stored.

        Raises:
            TooManyFiles: There are more than one chat may have.
        """
        if len(file_ids) > FILES_MAX:
            raise TooManyFiles(FILES_MAX)
        rows = await self._pool.fetch(SELECT_FILES, file_ids, owner_id)
        return {
            str(row["id"]): File(str(row["id"]), row["media_type"], row["name"]) for row in rows
        }

    async def hold(self, chat_id: ChatId, file_ids: tuple[str, ...], *, owner_id: OwnerId) -> None:
        """Link files to a chat; those already linked do not count again.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            FileNotFound: A file was purged meanwhile.
            TooManyFiles: The chat would have too many files.
        """
        try:
            await self._link(chat_id, file_ids, owner_id)
        except asyncpg.ForeignKeyViolationError as violation:
            if violation.constraint_name != Constraint.CHAT_FILES_FILE_FKEY:
                raise
            raise FileNotFound(file_ids[0]) from violation

    async def _link(self, chat_id: ChatId, file_ids: tuple[str, ...], owner_id: OwnerId) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(LOCK_HOLDER, chat_id, owner_id) is None:
                raise ChatNotFound(chat_id)
            others = await connection.fetchval(COUNT_OTHERS, chat_id, file_ids)
            if others + len(file_ids) > FILES_MAX:
                raise TooManyFiles(FILES_MAX)
            await connection.execute(INSERT_LINKS, chat_id, file_ids)

    async def keep(
        self, claim: OwnerClaim, owner_id: OwnerId, file_id: str, file: FileData
    ) -> None:
        """Store a file of a tool for its chat; an existing one is not changed.

        Raises:
            FenceLost: Another process owns the chat.
            ChatNotFound: There is no such chat of this owner.
            TooManyFiles: The chat would have too many files.
        """
        chat_id = claim.chat_id
        async with self._pool.acquire() as connection, connection.transaction():
            await hold_claim(connection, claim)
            if await connection.fetchval(LOCK_HOLDER, chat_id, owner_id) is None:
                raise ChatNotFound(chat_id)
            if await connection.fetchval(COUNT_OTHERS, chat_id, [file_id]) >= FILES_MAX:
                raise TooManyFiles(FILES_MAX)
            digest = sha256(file.data).digest()
            await connection.execute(
                INSERT_FILE, file_id, owner_id, file.name, file.media_type, digest, file.data
            )
            await connection.execute(INSERT_LINKS, chat_id, [file_id])
