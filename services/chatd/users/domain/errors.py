"""Errors of users and groups."""

from chatd.primitives.domain.errors import ChatError


class UserSuspended(ChatError):
    """The user is suspended or deleted."""

    def __init__(self, user_id: str) -> None:
        super().__init__("this user is locked out; an administrator can let them in again")
        self.user_id = user_id


class GroupsUnavailable(ChatError):
    """No gateway can be asked for groups."""

    def __init__(self) -> None:
        super().__init__("no gateway tells about groups; try again")
