"""The callers that a method's proto declares."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor

from parley.api.contract.v1 import options_pb2
from parley.api.identity.v1 import access_pb2
from parley.identity.caller import Role, ServiceName

_SERVICES = {
    access_pb2.SERVICE_GATEWAY: ServiceName.GATEWAY,
    access_pb2.SERVICE_CHATD: ServiceName.CHATD,
    access_pb2.SERVICE_TOOLRUNNER: ServiceName.TOOLRUNNER,
    access_pb2.SERVICE_MCPGATEWAY: ServiceName.MCPGATEWAY,
}
_ROLES = {
    access_pb2.ROLE_OWNER: Role.OWNER,
    access_pb2.ROLE_ADMIN: Role.ADMIN,
    access_pb2.ROLE_MEMBER: Role.MEMBER,
    access_pb2.ROLE_AUDITOR: Role.AUDITOR,
}
ADMINISTRATORS: Final = frozenset({Role.OWNER, Role.ADMIN})
ANY_SCOPE: Final = "any"
#: Audience of an HTTP binding -> the roles of its users. An auditor never reads chats.
AUDIENCES: Final[Mapping[int, frozenset[Role]]] = {
    options_pb2.AUDIENCE_UNSPECIFIED: ADMINISTRATORS | {Role.MEMBER},
    options_pb2.AUDIENCE_EVERYONE: frozenset(Role),
    options_pb2.AUDIENCE_ADMINISTRATORS: ADMINISTRATORS,
    options_pb2.AUDIENCE_ADMINISTRATORS_AND_AUDITORS: ADMINISTRATORS | {Role.AUDITOR},
    options_pb2.AUDIENCE_ANONYMOUS: frozenset(),
}


@dataclass(frozen=True, slots=True)
class CallerRule:
    """The callers one method accepts.

    Attributes:
        services: Services that may call on their own behalf.
        for_users: Services that may call for a user.
        roles: Accepted roles of that user; empty accepts all.
        scope: The scope a service token needs; None refuses service tokens.
        any_scope: Whether any other scope is accepted as well.
    """

    services: frozenset[ServiceName] = frozenset()
    for_users: frozenset[ServiceName] = frozenset()
    roles: frozenset[Role] = frozenset()
    scope: str | None = None
    any_scope: bool = False

    def accepts_role(self, role: Role) -> bool:
        """Return whether a user with `role` may call."""
        return not self.roles or role in self.roles

    @property
    def scope_needed(self) -> str | None:
        """The scope that a service token needs, for documents: `any` if each of them is enough."""
        return ANY_SCOPE if self.any_scope else self.scope

    def accepts_scopes(self, scopes: frozenset[str]) -> bool:
        """Return whether a token or key that is limited to `scopes` may call."""
        return self.scope is not None and (self.any_scope or self.scope in scopes)

    @property
    def admits_someone(self) -> bool:
        """Return whether the rule admits any caller at all."""
        return bool(self.services or self.for_users or self.scope)


def rule_of(method: str) -> CallerRule | None:
    """Return the rule of "/pkg.Service/Method"; None if it is unknown or declares no caller."""
    name = method.removeprefix("/").replace("/", ".")
    try:
        descriptor = descriptor_pool.Default().FindMethodByName(name)
    except KeyError:
        return None
    return _declared(descriptor)


def _declared(method: MethodDescriptor) -> CallerRule | None:
    # A value unknown to this build admits no caller; an unknown role must not turn "these roles"
    # into "every role".
    declared = method.GetOptions().Extensions[access_pb2.callers]
    roles = frozenset(_ROLES[role] for role in declared.roles if role in _ROLES)
    if declared.roles and not roles:
        return None
    if not roles:
        bindings = method.GetOptions().Extensions[options_pb2.http].bindings
        roles = frozenset(role for each in bindings for role in AUDIENCES[each.audience])
    rule = CallerRule(
        services=frozenset(_SERVICES[each] for each in declared.services if each in _SERVICES),
        for_users=frozenset(_SERVICES[each] for each in declared.for_users if each in _SERVICES),
        roles=roles,
        scope=declared.scope or None,
        any_scope=declared.any_scope,
    )
    return rule if rule.admits_someone else None
