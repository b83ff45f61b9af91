"""Errors of users and groups."""

from chatd.primitives.domain.errors import ChatError


class UserSuspended(ChatError):
    """Nobody may act for this user any more."""

    def __init__(self, user_id: str) -> None:
        super().__init__("this user is locked out; an administrator can let them in again")
        self.user_id = user_id


class GroupsUnavailable(ChatError):
    """Nobody can be asked about groups."""

    def __init__(self) -> None:
        super().__init__("no gateway tells about groups; try again")
