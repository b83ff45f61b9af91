"""Value types of users, groups, credentials and tokens."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from parley.identity import Role, User, UserId


class UserKind(StrEnum):
    """Whether a user is a person or a program."""

    PERSON = "person"
    SERVICE = "service"


class SignInMethod(StrEnum):
    """How a session was made."""

    LOGIN_LINK = "login_link"
    SIGN_IN_LINK = "sign_in_link"
    PASSWORD = "password"
    PASSKEY = "passkey"
    OIDC = "oidc"


class LinkPurpose(StrEnum):
    """What a one-time link is for."""

    INVITATION = "invitation"
    PASSWORD_RESET = "password_reset"


class UserState(StrEnum):
    """Whether a user may sign in and whether services may act for them."""

    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    DELETED = "deleted"  # Only the id is kept: it is never reused, and services can ask for it.


@dataclass(frozen=True, slots=True)
class UserRecord:
    """A user of this installation."""

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
    kind: UserKind = UserKind.PERSON

    @property
    def is_active(self) -> bool:
        """Whether the user may sign in and services may act for them."""
        return self.state is UserState.ACTIVE

    @property
    def as_user(self) -> User:
        """The user as named in tokens."""
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
    """An API key as stored, with its user; without scopes it may do all that its user may."""

    id: str
    digest: bytes
    user: UserRecord
    scopes: frozenset[str]
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApiKeyRecord:
    """The metadata of an API key; its secret is not stored."""

    id: str
    user_id: UserId
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    is_from_setting: bool = False


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A browser session, with its user."""

    id: str
    user: UserRecord
    last_seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """The metadata of a browser session; its token is not stored."""

    id: str
    user_id: UserId
    method: SignInMethod
    address: str
    user_agent: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PasskeyRecord:
    """What is shown of a passkey."""

    id: str
    user_id: UserId
    name: str
    created_at: datetime
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """The metadata of a one-time link; its token is not stored."""

    id: str
    user_id: UserId
    purpose: LinkPurpose
    created_by_user_id: UserId
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ServiceTokenRecord:
    """The metadata of a service token; its text is not stored.

    `signing_key_id` is None if it is not known; signatures of a retired key are refused.
    """

    id: str
    name: str
    user_id: UserId
    scopes: tuple[str, ...]
    issued_by_user_id: UserId
    issued_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None
    signing_key_id: str | None = None
    is_key_retired: bool = False


@dataclass(frozen=True, slots=True)
class RevokedToken:
    """A revoked, unexpired token, with its revocation number."""

    id: str
    expires_at: datetime
    revocation: int


@dataclass(frozen=True, slots=True)
class RevokedSet:
    """All revoked, unexpired tokens, ordered by revocation.

    Attributes:
        version: The number of the last revocation; increases with each.
        tokens: The tokens.
    """

    version: int
    tokens: tuple[RevokedToken, ...]


class OidcIssuer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The configuration of an identity provider.

    Attributes:
        name: Its name in addresses.
        display_name: What the button says.
        issuer: The issuer, exactly as its documents and tokens say it.
        client_id: The client that is registered there for this installation.
        client_secret: Its secret; empty for a public client.
        scopes: What is asked for.
        creates_users: Whether a user is created at the first sign-in.
        links_by_email: Whether a verified email address links a user who has no other way in.
        role: The role of such users.
        groups_claim: The claim with the groups of a user; empty for none.
        groups: Group of the issuer -> group here, whose membership follows the claim.
    """

    name: Annotated[str, msgspec.Meta(pattern="^[a-z0-9-]{1,32}$")]
    display_name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    issuer: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    client_id: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    client_secret: str = ""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    creates_users: bool = False
    links_by_email: bool = False
    role: Literal["member", "auditor"] = "member"
    groups_claim: str = ""
    groups: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class StoredIssuer:
    """An identity provider as it is listed.

    Attributes:
        issuer: The issuer without its secret.
        version: Counts changes; 0 if it comes from the file.
        has_client_secret: Whether it has a secret.
    """

    issuer: OidcIssuer
    version: int
    has_client_secret: bool


@dataclass(frozen=True, slots=True)
class LinkedIdentity:
    """A user of an identity provider who signs in as a user here."""

    id: str
    issuer: str
    subject: str
    linked_at: datetime
