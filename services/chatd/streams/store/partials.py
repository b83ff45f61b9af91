"""Pieces of answers that are being generated, kept so that little is lost if a process stops.

Written behind the stream, for many chats at once, and without waiting for the disk: a chunk that is
lost in a crash of the database was never acknowledged.
"""

import msgspec

from chatd.chats.domain.pieces import Chunk, Piece
from chatd.chats.store.codec import stored_text, text_as_stored
from chatd.primitives.domain.ids import ChatId
from parley.postgres import Pool

# Chunks of several chats. The row of each chat is locked against its deletion first: a chat that is
# gone, or that is being deleted right now, gets nothing, and the chunks of the others are written.
# May run: process.
INSERT_CHUNKS = """
    WITH present AS MATERIALIZED (
        SELECT id FROM chat.chats WHERE id = ANY($1::uuid[]) FOR KEY SHARE SKIP LOCKED)
    INSERT INTO chat.chat_partials
        (chat_id, history_version, generation_attempt, first_seq, content)
    SELECT new.chat_id, new.history_version, new.generation_attempt, new.first_seq,
        new.content::json
    FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
        AS new (chat_id, history_version, generation_attempt, first_seq, content)
    JOIN present ON present.id = new.chat_id
    ON CONFLICT DO NOTHING
"""

# The chunks of one episode in order, for the process that recovers it.
# May run: process.
SELECT_CHUNKS = """
    SELECT content::text AS content FROM chat.chat_partials
    WHERE chat_id = $1 AND history_version = $2 AND generation_attempt = $3 ORDER BY first_seq
"""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[Piece, ...])


class PostgresPartials:
    """Partial answers in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, chunks: tuple[Chunk, ...]) -> None:
        """Insert chunks, without waiting until they are on the disk."""
        contents = [text_as_stored(_encoder.encode(chunk.pieces).decode()) for chunk in chunks]
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute("SET LOCAL synchronous_commit = off")
            await connection.execute(
                INSERT_CHUNKS,
                [chunk.chat_id for chunk in chunks],
                [chunk.history_version for chunk in chunks],
                [chunk.generation_attempt for chunk in chunks],
                [chunk.first_seq for chunk in chunks],
                contents,
            )

    async def load(
        self, chat_id: ChatId, history_version: int, generation_attempt: int
    ) -> tuple[Piece, ...]:
        """Return the pieces of one episode in order."""
        rows = await self._pool.fetch(SELECT_CHUNKS, chat_id, history_version, generation_attempt)
        return tuple(
            piece for row in rows for piece in _decoder.decode(stored_text(row["content"]))
        )
