"""How the files of a chat's workspace differ from their last commits."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from chatd.primitives.domain.ids import ChatId, Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffStatus:
    """What a list of chats shows of a workspace.

    Attributes:
        branch: Of the first repository, the root's if that is one; empty if none is checked out.
        origin_url: Of the same repository; empty for none.
        repositories: How many there are.
        changed_files: In all of them, as are the lines.
        refreshed_at: When it was found to be so.
    """

    branch: str
    origin_url: str
    repositories: int
    changed_files: int
    added_lines: int
    deleted_lines: int
    refreshed_at: datetime


class RepositoriesUnknown(Exception):
    """Nobody could tell how a workspace differs; the next change is the next chance."""


class Repositories(Protocol):
    """The repositories of workspaces."""

    async def status(self, chat_id: ChatId, owner: Owner) -> DiffStatus | None:
        """Return how a chat's workspace differs; None if it has no repository.

        Raises:
            RepositoriesUnknown: Nobody could tell.
        """
        ...
