"""Diff statuses of workspaces, stored with their chats for chat lists."""

import msgspec

from chatd.chats.domain.diffs import DiffStatus
from chatd.primitives.domain.ids import ChatId
from parley.postgres import Pool

# Only changes are written: feeds publish every new row version.
# May run: process.
SET_DIFF_STATUS = """
    UPDATE chat.chats c SET diff_status = $2::text::jsonb FROM chat.chat_exec e
    WHERE c.id = $1 AND e.chat_id = c.id
        AND c.diff_status - 'refreshed_at' IS DISTINCT FROM $2::text::jsonb - 'refreshed_at'
    RETURNING e.snapshot_version
"""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(DiffStatus)


class PostgresDiffs:
    """Diff statuses in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def set(self, chat_id: ChatId, status: DiffStatus | None) -> int | None:
        """Store a status; return the chat's version, None if it did not change."""
        text = None if status is None else _encoder.encode(status).decode()
        version: int | None = await self._pool.fetchval(SET_DIFF_STATUS, chat_id, text)
        return version


def diff_status_of(text: str | None) -> DiffStatus | None:
    """Return the status of a stored form."""
    return None if text is None else _decoder.decode(text)
