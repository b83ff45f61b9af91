"""Owners of chats as the users that other services know."""

from chatd.primitives.domain.ids import Owner
from parley.identity import Role, User, UserId


def user_of(owner: Owner) -> User:
    """Return the owner of a chat as the user on whose behalf calls are made."""
    return User(UserId(owner.id), Role(owner.role))
