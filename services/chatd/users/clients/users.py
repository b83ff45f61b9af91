"""Converts owners of chats to users of other services."""

from chatd.primitives.domain.ids import Owner
from parley.identity import Role, User, UserId


def user_of(owner: Owner) -> User:
    """Return the owner of a chat as the user on whose behalf calls are made."""
    return User(UserId(owner.id), Role(owner.role))
