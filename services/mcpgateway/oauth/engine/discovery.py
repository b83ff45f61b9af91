"""Finds the authorization server of an MCP server.

The server is asked without credentials first; its refusal may name its metadata (RFC 9728), which
are otherwise at well-known addresses. They name the authorization server, whose own metadata are
at well-known addresses of OAuth or OpenID Connect (RFC 8414). A server without metadata is taken
for its own authorization server, as the protocol said in March 2025. Nothing is believed that
names another resource or another issuer than the one asked.
"""

from typing import Final
from urllib.parse import urlsplit

from mcpgateway.oauth.domain.metadata import (
    OFFLINE_SCOPE,
    AuthorizationServer,
    Challenge,
    Discovered,
    Malformed,
    ResourceMetadata,
    canonical,
    is_same_issuer,
    merged_scopes,
    read_challenge,
    read_resource,
    read_server,
    resource_metadata_urls,
    server_metadata_urls,
)
from mcpgateway.oauth.engine.issuer_http import IssuerHttp
from mcpgateway.oauth.errors import IssuerFailed, PkceUnsupported
from mcpgateway.servers.domain import OAuthSettings, Server, Transport
from parley.cache import BoundedCache
from parley.clock import Clock

DISCOVERED_TTL_S: Final = 900.0
DISCOVERED_MAX: Final = 500


class Discovery:
    """Finds authorization servers, and remembers them for a while."""

    def __init__(self, http: IssuerHttp, clock: Clock) -> None:
        self._http = http
        self._found: BoundedCache[tuple[str, int], Discovered] = BoundedCache(
            DISCOVERED_MAX, clock=clock, ttl_of=lambda _: DISCOVERED_TTL_S
        )

    async def of(self, server: Server) -> Discovered:
        """Return the authorization server of an MCP server.

        Raises:
            IssuerFailed: It cannot be found, or its metadata cannot be trusted.
            PkceUnsupported: It offers no PKCE with S256.
        """
        return await self._found.get_or_read(
            (server.id, server.version), lambda: self._discovered(server)
        )

    def forget(self, server: Server) -> None:
        """Find it again at the next use."""
        self._found.pop((server.id, server.version))

    async def _discovered(self, server: Server) -> Discovered:
        url, oauth = server.settings.url, server.settings.oauth or OAuthSettings()
        challenge = Challenge()
        resource: ResourceMetadata | None = None
        if oauth.authorization_url and oauth.token_url:
            issuer = _configured(oauth)
        else:
            challenge = await self._challenge(server)
            resource = await self._resource(url, challenge)
            try:
                issuer = await self._server(url, oauth, resource)
            except ValueError as error:
                raise IssuerFailed("", "its identifier is not a URL") from error
        if not issuer.has_pkce:
            raise PkceUnsupported(issuer.issuer)
        for endpoint in issuer.urls:
            self._http.check(endpoint)
        listed = resource.scopes_supported if resource is not None else ()
        scopes = merged_scopes(oauth.scopes or challenge.scopes or listed)
        if scopes and OFFLINE_SCOPE in issuer.scopes:
            scopes = merged_scopes(scopes, (OFFLINE_SCOPE,))
        named = canonical(url) if resource is None else resource.resource
        return Discovered(issuer, named, scopes)

    async def _challenge(self, server: Server) -> Challenge:
        settings = server.settings
        is_stream = settings.transport is Transport.SSE
        answer = await self._http.challenge(settings.url, is_stream=is_stream)
        return read_challenge(answer.challenge) if answer.status in (401, 403) else Challenge()

    async def _resource(self, url: str, challenge: Challenge) -> ResourceMetadata | None:
        """Return the metadata of a resource; None if it has none.

        Raises:
            IssuerFailed: They are those of another resource.
        """
        for place in resource_metadata_urls(url, challenge):
            answer = await self._http.get(place)
            if answer.status != 200:
                continue
            try:
                return read_resource(answer.document, url)
            except Malformed as error:
                raise IssuerFailed("", f"the MCP server cannot be trusted, {error}") from error
        return None

    async def _server(
        self, url: str, oauth: OAuthSettings, resource: ResourceMetadata | None
    ) -> AuthorizationServer:
        named = resource.authorization_servers if resource is not None else ()
        if oauth.issuer and named and not any(is_same_issuer(oauth.issuer, each) for each in named):
            raise IssuerFailed(oauth.issuer, "the MCP server names another one than configured")
        parts = urlsplit(url)
        issuer = oauth.issuer or (named[0] if named else f"{parts.scheme}://{parts.netloc}")
        problem = "it publishes no metadata"
        for place in server_metadata_urls(issuer):
            answer = await self._http.get(place)
            if answer.status != 200:
                continue
            try:
                return read_server(answer.document, issuer)
            except Malformed as error:
                raise IssuerFailed(issuer, str(error)) from error
        raise IssuerFailed(issuer, problem)


def _configured(oauth: OAuthSettings) -> AuthorizationServer:
    """Return the server that an admin described; PKCE is used in any case."""
    return AuthorizationServer(
        issuer=oauth.issuer,
        authorization_url=oauth.authorization_url,
        token_url=oauth.token_url,
        revocation_url=oauth.revocation_url,
    )
