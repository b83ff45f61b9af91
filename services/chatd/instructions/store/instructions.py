"""Pinned instruction files in PostgreSQL; turns read them with the other facts of their chat."""

import asyncpg
import msgspec

from chatd.content.domain.instructions import InstructionSet, PinnedInstructions, digest_of
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId
from parley.postgres import Pool

# For the worker of a chat, or after its owner was checked. The version grows only if the files
# differ from the pinned ones.
# May run: process.
PIN = """
    INSERT INTO chat.chat_instructions AS pinned
        (chat_id, version, digest, files, skills, agent_types, pinned_at)
    VALUES ($1, 1, $2, $3::text::json, $4::text::json, $5::text::json, clock_timestamp())
    ON CONFLICT (chat_id) DO UPDATE SET digest = excluded.digest, files = excluded.files,
        skills = excluded.skills, agent_types = excluded.agent_types,
        version = pinned.version + (pinned.digest <> excluded.digest)::int,
        pinned_at = excluded.pinned_at
    RETURNING version
"""

# For the worker of a chat, or after its owner was checked. Only changes are written: feeds publish
# every new row version. Others may have been pinned since the files were compared.
# May run: process.
SET_DRIFTED = """
    UPDATE chat.chats SET instructions_drifted = $2 WHERE id = $1 AND instructions_drifted <> $2
        AND EXISTS (SELECT 1 FROM chat.chat_instructions WHERE chat_id = $1 AND digest = $3)
    RETURNING id
"""


class PostgresInstructions:
    """Stores pinned instruction files."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def pin(self, chat_id: ChatId, found: InstructionSet) -> PinnedInstructions:
        """Pin files and skills in place of those that are pinned.

        Raises:
            ChatNotFound: The chat was deleted meanwhile.
        """
        digest = digest_of(found)
        files = msgspec.json.encode(found.files).decode()
        skills = msgspec.json.encode(found.skills).decode()
        types = msgspec.json.encode(found.agent_types).decode()
        try:
            version: int = await self._pool.fetchval(PIN, chat_id, digest, files, skills, types)
        except asyncpg.ForeignKeyViolationError:
            raise ChatNotFound(chat_id) from None
        return PinnedInstructions(version, digest, found)

    async def set_drifted(self, chat_id: ChatId, digest: str, *, drifted: bool) -> bool:
        """Store whether the files of the workspace differ; return whether that is new.

        Nothing is stored if others than those with the digest are pinned by now.
        """
        return await self._pool.fetchval(SET_DRIFTED, chat_id, drifted, digest) is not None
