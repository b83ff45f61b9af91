"""Who calls: services, users with their roles, and the caller of an admitted call."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

UserId = NewType("UserId", str)


class ServiceName(StrEnum):
    """A Parley service, as caller, issuer and audience."""

    GATEWAY = "gateway"
    CHATD = "chatd"
    TOOLRUNNER = "toolrunner"
    MCPGATEWAY = "mcpgateway"


class Role(StrEnum):
    """The role of a user in the installation."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    AUDITOR = "auditor"


@dataclass(frozen=True, slots=True)
class User:
    """A user, with the role from the token."""

    id: UserId
    role: Role


@dataclass(frozen=True, slots=True)
class Caller:
    """The identity a method sees after `Guard.admit`.

    Attributes:
        service: The Parley service that calls; None for an internal caller with a service token
            and for open methods.
        user: The user on whose behalf the call is made; None when a service calls for itself.
        scopes: The scopes of a service token; empty for Parley services.
        token_id: Id of the service token, for the audit log; None for Parley services.
        name: The caller's name in logs: the service, or the service token's name.
        expires_at: When the service token expires, which also ends its open streams; None for
            Parley services, whose tokens are checked only when a call begins.
    """

    service: ServiceName | None
    user: User | None
    scopes: frozenset[str]
    token_id: str | None
    name: str
    expires_at: datetime | None = None


ANONYMOUS = Caller(service=None, user=None, scopes=frozenset(), token_id=None, name="anonymous")
