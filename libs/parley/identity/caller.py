"""Who stands behind an admitted call."""

from dataclasses import dataclass

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
    """

    service: ServiceName | None
    user: User | None
    scopes: frozenset[str]
    token_id: str | None
    name: str


ANONYMOUS = Caller(service=None, user=None, scopes=frozenset(), token_id=None, name="anonymous")
