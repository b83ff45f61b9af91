"""What the gateway keeps about people and tokens, as values."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from parley.identity import Role, User, UserId


class UserState(StrEnum):
    """Whether a user may sign in and be acted for."""

    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    DELETED = (
        "deleted"  # Only the id is left, so that it is never given again and services can ask.
    )


@dataclass(frozen=True, slots=True)
class UserRecord:
    """A person of this installation."""

    id: UserId
    login: str
    display_name: str
    email: str
    role: Role
    state: UserState
    version: int
    created_at: datetime
    updated_at: datetime
    deactivated_at: datetime | None

    @property
    def is_active(self) -> bool:
        """Whether the user may sign in and be acted for."""
        return self.state is UserState.ACTIVE

    @property
    def as_user(self) -> User:
        """The user as tokens name them."""
        return User(self.id, self.role)


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group of users, which shares and limits can name."""

    id: str
    name: str
    member_count: int
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class StoredApiKey:
    """An API key as it is stored, with the user it speaks for."""

    id: str
    digest: bytes
    user: UserRecord
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A browser's session, with the user who signed in."""

    user: UserRecord
    last_seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ServiceTokenRecord:
    """What is known of an issued service token; its text is not stored."""

    id: str
    name: str
    user_id: UserId
    scopes: tuple[str, ...]
    issued_by_user_id: UserId
    issued_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RevokedToken:
    """A revoked token that has not expired, and its place among all revocations."""

    id: str
    expires_at: datetime
    revocation: int


@dataclass(frozen=True, slots=True)
class RevokedSet:
    """Every token that is revoked and not expired, ordered by revocation.

    Attributes:
        version: The number of the last revocation there was; grows with each.
        tokens: The set.
    """

    version: int
    tokens: tuple[RevokedToken, ...]
