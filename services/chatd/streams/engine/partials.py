"""Write-behind of partial answers, in chunks, for all chats of this process together.

An episode that ends before the next write costs nothing: a committed answer needs no partial.
"""

import asyncio
import logging
from dataclasses import dataclass, field

from chatd.chats.domain.chat import ChatState
from chatd.chats.domain.pieces import Chunk, PartialStore, Piece
from chatd.content.domain.parts import ToolResultDelta
from chatd.primitives.domain.ids import ChatId
from chatd.streams.engine.live import LivePart
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

WRITE_EVERY_S = 0.5
CHUNK_CHARACTERS = 4096
PENDING_CHARACTERS_MAX = 1 << 20  # Per episode; pieces beyond it are not kept.

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Pending:
    """Pieces of one episode that are not written yet."""

    history_version: int
    generation_attempt: int
    first_seq: int
    characters: int = 0
    pieces: list[Piece] = field(default_factory=list)


class PartialWriter:
    """Buffers published pieces and writes them periodically, or when a chat's buffer is full."""

    def __init__(self, partials: PartialStore, clock: Clock) -> None:
        self._partials = partials
        self._clock = clock
        self._pending: dict[ChatId, Pending] = {}
        self._is_full = asyncio.Event()

    def shown(self, chat_id: ChatId, part: LivePart) -> None:
        """Buffer one piece; never blocks. Live results are not stored."""
        if isinstance(part.part, ToolResultDelta):
            return
        pending = self._pending.get(chat_id)
        episode = (part.history_version, part.generation_attempt)
        if pending is None or (pending.history_version, pending.generation_attempt) != episode:
            pending = self._pending[chat_id] = Pending(*episode, first_seq=part.seq)
        if pending.characters > PENDING_CHARACTERS_MAX:
            return
        pending.pieces.append(Piece(part.role, part.part_index, part.part))
        pending.characters += part.characters
        if pending.characters >= CHUNK_CHARACTERS:
            self._is_full.set()

    def state_changed(self, state: ChatState) -> None:
        """Drop buffered pieces of an episode that a commit has closed."""
        pending = self._pending.get(state.chat_id)
        episode = (state.history_version, state.generation_attempt)
        if pending is not None and episode != (
            pending.history_version,
            pending.generation_attempt,
        ):
            del self._pending[state.chat_id]

    async def run(self) -> None:
        """Write in a loop; while the database is unavailable pieces are lost, but no turn fails."""
        while True:
            await self._until_due()
            try:
                await self._flush()
            except DatabaseUnavailable as error:
                logger.warning("partial answers were not kept: %s", error)

    async def _until_due(self) -> None:
        await is_set_within(self._is_full, WRITE_EVERY_S, self._clock)
        self._is_full.clear()

    async def _flush(self) -> None:
        pending, self._pending = self._pending, {}
        chunks = tuple(
            Chunk(
                chat_id,
                each.history_version,
                each.generation_attempt,
                each.first_seq,
                tuple(each.pieces),
            )
            for chat_id, each in pending.items()
        )
        if not chunks:
            return
        try:
            await self._partials.add(chunks)
        except DatabaseUnavailable:
            raise
        except Exception:
            if len(chunks) == 1:
                raise
            await self._add_each(chunks)

    async def _add_each(self, chunks: tuple[Chunk, ...]) -> None:
        """Write chunks one by one, so that a failing chunk does not affect the other chats."""
        failure: Exception | None = None
        for chunk in chunks:
            try:
                await self._partials.add((chunk,))
            except DatabaseUnavailable:
                raise
            except Exception as error:
                failure = error
        if failure is not None:
            raise failure
