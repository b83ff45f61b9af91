"""Partial answers as values: consecutive pieces of an episode that is not committed."""

from dataclasses import dataclass
from typing import Protocol

from chatd.chats.domain.pieces import Piece
from chatd.primitives.domain.ids import ChatId


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive pieces of one episode."""

    chat_id: ChatId
    history_version: int
    generation_attempt: int
    first_seq: int
    pieces: tuple[Piece, ...]


class PartialStore(Protocol):
    """The store of partial answers."""

    async def add(self, chunks: tuple[Chunk, ...]) -> None:
        """Store chunks."""
        ...
