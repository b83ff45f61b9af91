"""Who stands behind an admitted call."""

from dataclasses import dataclass
from datetime import datetime

from parley.identity.names import Role, ServiceName, UserId


@dataclass(frozen=True, slots=True)
class User:
    """A person, with the role they had when the token was signed."""

    id: UserId
    role: Role


@dataclass(frozen=True, slots=True)
class Caller:
    """The identity a method sees after `Guard.admit`.

    Attributes:
        service: The Parley service that calls; None for an internal caller with a service token
            and for open methods.
        user: Whom the call is made for; None when a service calls on its own behalf.
        scopes: What a service token allows; empty for Parley services.
        token_id: Id of the service token, for the audit log; None for Parley services.
        name: How logs name the caller: the service, or the service token's name.
        expires_at: When the service token ends, and with it every stream it opened; None for
            Parley services, whose tokens only open calls.
    """

    service: ServiceName | None
    user: User | None
    scopes: frozenset[str]
    token_id: str | None
    name: str
    expires_at: datetime | None = None


ANONYMOUS = Caller(service=None, user=None, scopes=frozenset(), token_id=None, name="anonymous")
