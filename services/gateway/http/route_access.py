"""The table of all routes of the gateway with their access rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.http.limits.admission import Duration
from parley.identity import CallerRule, Role, rule_of


class Need(StrEnum):
    """The authentication that a route requires."""

    NOTHING = "nothing"
    SIGN_IN = "sign-in"


@dataclass(frozen=True, slots=True)
class Access:
    """The access rule of a route.

    Attributes:
        doc: The purpose of the route, in one sentence.
        need: Whether a sign-in is required.
        roles: The allowed roles, if so.
        method: The equivalent gRPC method; empty if there is none.
        duration: How long its requests may take.
    """

    doc: str
    need: Need = Need.SIGN_IN
    roles: frozenset[Role] = frozenset()
    method: str = ""
    duration: Duration = Duration.SHORT

    @property
    def rule(self) -> CallerRule | None:
        """The callers of the method, as its proto declares them; None without a method."""
        return rule_of(self.method) if self.method else None

    @property
    def scope(self) -> str | None:
        """The scope that a service token needs for the method, or "any"; None refuses tokens."""
        return None if self.rule is None else self.rule.scope_needed


def _anyone(doc: str) -> Access:
    return Access(doc, Need.NOTHING)


PAGES: Mapping[tuple[str, str], Access] = {
    ("GET", "/"): _anyone("The page."),
    ("GET", "/sign-in"): _anyone("The page: signing in."),
    ("GET", "/waiting"): _anyone("The page: what waits for its user."),
    ("GET", "/chats/{chat_id}"): _anyone("The page: a chat."),
    ("GET", "/races"): _anyone("The page: the races of its user."),
    ("GET", "/races/{race_id}"): _anyone("The page: a race."),
    ("GET", "/settings"): _anyone("The page: one's own settings."),
    ("GET", "/settings/{section}"): _anyone("The page: a part of one's own settings."),
    ("GET", "/admin"): _anyone("The page: administration."),
    ("GET", "/admin/{section}"): _anyone("The page: a part of the administration."),
    ("GET", "/terminal"): _anyone("The page: a terminal, in a frame of it."),
    ("GET", "/service-worker.js"): _anyone("The page: shows notifications while it is closed."),
    ("GET", "/assets/{name}"): _anyone("A file of the page."),
    ("GET", "/account"): _anyone("Who is signed in, and signing out, without scripts."),
    ("GET", "/docs"): _anyone("This list of routes."),
    ("GET", "/problems"): _anyone("Every problem that a request may be answered with."),
    ("GET", "/problems/{code}"): _anyone("What a problem means and what to do about it."),
    ("GET", "/login"): _anyone("The form to sign in; with a token, the owner's login link."),
    ("POST", "/login"): _anyone("Sign in by the form."),
    ("POST", "/login/code"): _anyone("Give the second factor by the form."),
    ("GET", "/login/oidc/{issuer}"): _anyone("Sign in with an identity provider."),
    ("GET", "/login/oidc/{issuer}/callback"): _anyone("Come back from an identity provider."),
    ("GET", "/mcp/login/{server_id}"): _anyone("Log in at an MCP server, in a window of its own."),
    ("GET", "/mcp/callback"): _anyone("Come back from the login at an MCP server."),
    ("GET", "/.well-known/mcp-client.json"): _anyone(
        "This installation, as authorization servers of MCP servers see it."
    ),
    ("POST", "/logout"): _anyone("Sign out by the form."),
    ("GET", "/link"): _anyone("The form to set a password by a one-time link."),
    ("POST", "/link"): _anyone("Set a password by the form of a one-time link."),
    ("GET", "/healthz"): _anyone("Whether this process lives."),
    ("GET", "/readyz"): _anyone("Whether this process can do its work."),
    ("GET", "/connection"): _anyone("How a request reached this process, for `parley doctor`."),
    ("GET", "/openapi.json"): _anyone("The description of this API for programs."),
}


class RouteUndeclared(Exception):
    """A route that is missing in the table, or an entry without a route.

    Attributes:
        routes: Methods and paths that are on one side only.
    """

    def __init__(self, routes: frozenset[tuple[str, str]]) -> None:
        listed = ", ".join(f"{method} {path}" for method, path in sorted(routes))
        super().__init__(f"declare who may use {listed} in gateway.http.route_access, or serve it")
        self.routes = routes
