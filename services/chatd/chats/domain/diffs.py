"""Uncommitted changes in the repositories of a chat's workspace."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from chatd.primitives.domain.ids import ChatId, Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffStatus:
    """The diff status of a workspace, as shown in a chat list.

    Attributes:
        branch: Of the first repository, the root's if that is one; empty if none is checked out.
        origin_url: Of the same repository; empty for none.
        repositories: How many there are.
        changed_files: In all of them, as are the lines.
        refreshed_at: When it was determined.
    """

    branch: str
    origin_url: str
    repositories: int
    changed_files: int
    added_lines: int
    deleted_lines: int
    refreshed_at: datetime


class RepositoriesUnknown(Exception):
    """The diff status could not be determined; the next change triggers another try."""


class Repositories(Protocol):
    """The repositories of workspaces."""

    async def status(self, chat_id: ChatId, owner: Owner) -> DiffStatus | None:
        """Return the diff status of a chat's workspace; None if it has no repository.

        Raises:
            RepositoriesUnknown: It could not be determined.
        """
        ...
