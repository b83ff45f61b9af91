"""Chooses the client of a login: the configured one, our document, or one registered for us."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from mcpgateway.oauth.domain.grants import AuthMethod, ClientKind, Terms
from mcpgateway.oauth.domain.metadata import AuthorizationServer
from mcpgateway.oauth.engine.issuer_http import IssuerHttp
from mcpgateway.oauth.errors import IssuerFailed, NoClient
from mcpgateway.oauth.store.clients import Clients, RegisteredClient
from mcpgateway.servers.domain import OAuthSettings, Server
from mcpgateway.servers.store import Servers
from parley.clock import Clock

CLIENT_NAME: Final = "Parley"
CLIENT_ID_CHARACTERS_MAX: Final = 2048
SECRET_CHARACTERS_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class ChosenClient:
    """The client of a login."""

    client_id: str
    kind: ClientKind
    auth_method: AuthMethod


class Registration:
    """Chooses and registers clients.

    Args:
        servers: The stored servers, with the secrets of configured clients.
        clients: The registered clients.
        http: Calls authorization servers.
        clock: The clock of expiries.
    """

    def __init__(self, servers: Servers, clients: Clients, http: IssuerHttp, clock: Clock) -> None:
        self._servers = servers
        self._clients = clients
        self._http = http
        self._clock = clock

    async def choose(
        self, server: Server, issuer: AuthorizationServer, *, redirect_uri: str, document_url: str
    ) -> ChosenClient:
        """Return the client for a login.

        Raises:
            NoClient: None is configured, and none can be registered.
            IssuerFailed: The registration fails.
        """
        oauth = server.settings.oauth or OAuthSettings()
        if oauth.client_id:
            secret = (await self._servers.credentials(server)).oauth_client_secret
            method = _method(issuer.auth_methods) if secret else AuthMethod.NONE
            return ChosenClient(oauth.client_id, ClientKind.CONFIGURED, method)
        if document_url and issuer.takes_documents:
            return ChosenClient(document_url, ClientKind.DOCUMENT, AuthMethod.NONE)
        known = await self._clients.find(server.id, issuer.issuer, redirect_uri)
        if known is None or not known.is_valid(self._clock.now()):
            if not issuer.registration_url:
                raise NoClient(server.id)
            known = await self._register(issuer, redirect_uri)
            await self._clients.put(server.id, issuer.issuer, redirect_uri, known)
        return ChosenClient(known.client_id, ClientKind.REGISTERED, known.auth_method)

    async def secret_of(self, server: Server, terms: Terms) -> str | None:
        """Return the secret of the client of a grant, empty without one; None if it is gone."""
        match terms.client_kind:
            case ClientKind.DOCUMENT:
                return ""
            case ClientKind.CONFIGURED:
                return (await self._servers.credentials(server)).oauth_client_secret
            case ClientKind.REGISTERED:
                known = await self._clients.find(server.id, terms.issuer, terms.redirect_uri)
                if known is None or known.client_id != terms.client_id:
                    return None
                return known.secret

    async def forget(self, server_id: str, terms: Terms) -> None:
        """Register anew at the next login, because the issuer no longer knows the client."""
        await self._clients.delete(server_id, terms.issuer, terms.client_id)

    async def _register(self, issuer: AuthorizationServer, redirect_uri: str) -> RegisteredClient:
        offered = issuer.auth_methods
        method = AuthMethod.NONE if AuthMethod.NONE in offered else _method(offered)
        origin = urlsplit(redirect_uri)
        wanted = {
            "client_name": CLIENT_NAME,
            "client_uri": f"{origin.scheme}://{origin.netloc}",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": "web",
        }
        answer = await self._http.post_json(issuer.registration_url, wanted)
        if answer.status not in (200, 201) or not isinstance(answer.document, dict):
            raise IssuerFailed(issuer.issuer, f"it registers no client (HTTP {answer.status})")
        return _registered(issuer.issuer, answer.document, method)


def _method(offered: tuple[str, ...]) -> AuthMethod:
    is_post_only = AuthMethod.POST in offered and AuthMethod.BASIC not in offered
    return AuthMethod.POST if is_post_only else AuthMethod.BASIC


def _registered(issuer: str, document: Mapping[str, Any], asked: AuthMethod) -> RegisteredClient:
    client_id, secret = document.get("client_id"), document.get("client_secret") or ""
    given = document.get("token_endpoint_auth_method", asked)
    until = document.get("client_secret_expires_at") or 0
    is_whole = (
        isinstance(client_id, str)
        and 0 < len(client_id) <= CLIENT_ID_CHARACTERS_MAX
        and isinstance(secret, str)
        and len(secret) <= SECRET_CHARACTERS_MAX
        and given in tuple(AuthMethod)
        and isinstance(until, int)
        and 0 <= until < 32503680000
    )
    if not is_whole or (given != AuthMethod.NONE and not secret):
        raise IssuerFailed(issuer, "its registration of a client cannot be used")
    expires_at = datetime.fromtimestamp(until, UTC) if until and secret else None
    return RegisteredClient(str(client_id), AuthMethod(given), secret, expires_at)
