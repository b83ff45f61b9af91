"""Every route of the gateway, who may use it and what it is for: the one table of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from parley.identity import Role


class Need(StrEnum):
    """What a route asks of whoever uses it."""

    NOTHING = "nothing"
    SIGN_IN = "sign-in"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use a route.

    Attributes:
        doc: What the route is for, in one sentence.
        need: Whether one has to be signed in.
        roles: The roles that may, if so.
    """

    doc: str
    need: Need = Need.SIGN_IN
    roles: frozenset[Role] = frozenset()


EVERYONE = frozenset(Role)
# An auditor reads the audit log and metrics, never chats.
CHATTERS = frozenset({Role.OWNER, Role.ADMIN, Role.MEMBER})
MANAGERS = frozenset({Role.OWNER, Role.ADMIN})
OVERSEERS = MANAGERS | {Role.AUDITOR}

ACCESS: Mapping[tuple[str, str], Access] = {
    ("GET", "/"): Access("The page.", Need.NOTHING),
    ("GET", "/docs"): Access("This list of routes.", Need.NOTHING),
    ("GET", "/login"): Access("Sign in by the one-time link.", Need.NOTHING),
    ("GET", "/healthz"): Access("Whether this process lives.", Need.NOTHING),
    ("GET", "/readyz"): Access("Whether this process can do its work.", Need.NOTHING),
    ("GET", "/api/v1/me"): Access("Who is signed in.", roles=EVERYONE),
    ("POST", "/api/v1/chats"): Access("Create a chat and start its turn.", roles=CHATTERS),
    ("GET", "/api/v1/chats/{chat_id}"): Access("Read a chat.", roles=CHATTERS),
    ("GET", "/api/v1/chats/{chat_id}/messages"): Access("Read its history.", roles=CHATTERS),
    ("POST", "/api/v1/chats/{chat_id}/messages"): Access("Send a message.", roles=CHATTERS),
    ("GET", "/api/v1/chats/{chat_id}/events"): Access("Follow what happens.", roles=CHATTERS),
    ("GET", "/api/v1/events"): Access("Follow the list of chats.", roles=CHATTERS),
    ("POST", "/api/v1/service-tokens"): Access("Issue a service token.", roles=MANAGERS),
    ("GET", "/api/v1/service-tokens"): Access("List service tokens.", roles=OVERSEERS),
    ("DELETE", "/api/v1/service-tokens/{token_id}"): Access(
        "Revoke a service token.", roles=MANAGERS
    ),
}


class RouteUndeclared(Exception):
    """A route that the table does not name, or a name in it that is no route.

    Attributes:
        routes: Methods and paths that are on one side only.
    """

    def __init__(self, routes: frozenset[tuple[str, str]]) -> None:
        listed = ", ".join(f"{method} {path}" for method, path in sorted(routes))
        super().__init__(f"declare who may use {listed} in gateway.access, or serve it")
        self.routes = routes
