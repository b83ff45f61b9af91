"""Beginning, completing and giving up logins."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from mcpgateway.oauth.domain.flows import (
    FLOW_LIFETIME,
    SECRET_BYTES,
    Flow,
    authorization_url,
    secret_text,
    sha256,
)
from mcpgateway.oauth.domain.grants import Grant, Terms, fingerprint_of
from mcpgateway.oauth.domain.metadata import is_answer_of, merged_scopes
from mcpgateway.oauth.engine.discovery import Discovery
from mcpgateway.oauth.engine.registration import Registration
from mcpgateway.oauth.engine.tokens import (
    ClientRefused,
    GrantRefused,
    Revocation,
    TokenEndpoint,
)
from mcpgateway.oauth.errors import (
    AuthorizationDeclined,
    ConfigSuperseded,
    FlowConsumed,
    FlowMismatch,
    IssuerFailed,
    IssuerMismatch,
    NoClient,
    NotOAuth,
)
from mcpgateway.oauth.store.flows import Flows
from mcpgateway.oauth.store.grants import GrantStore
from mcpgateway.servers.domain import AuthKind, Server
from mcpgateway.servers.store import Servers
from parley.clock import Clock
from parley.secrets import SecretsError, TokenBytes
from parley.tasks import Shielding

TRIES_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """Who wants to log in, from where.

    Attributes:
        request_id: The id of the request; a repeat begins anew.
        user_id: The user.
        browser_sha256: Of a value that only the browser has.
        redirect_uri: Where the browser is sent back to.
        document_url: Where our client document is; empty if authorization servers cannot read it.
    """

    request_id: str
    user_id: str
    browser_sha256: bytes = field(repr=False)
    redirect_uri: str
    document_url: str = ""


@dataclass(frozen=True, slots=True)
class LoginAnswer:
    """What the browser brought back."""

    request_id: str
    user_id: str
    state: str = field(repr=False)
    code: str = field(repr=False)
    issuer: str | None
    error: str
    error_description: str
    browser_binding: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class BegunLogin:
    """Where to send the browser, and until when it may come back."""

    url: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class LoginStores:
    """The stores of logins."""

    servers: Servers
    flows: Flows
    grants: GrantStore


class UserLogins:
    """Begins, completes and gives up logins.

    Args:
        stores: The stores.
        discovery: Finds authorization servers.
        registration: Chooses clients.
        tokens: Calls token endpoints.
        clock: The clock.
        new_id: Generates ids.
        token_bytes: Random bytes of secrets.
        tasks: Owns exchanges and revocations whose callers were cancelled.
    """

    def __init__(
        self,
        stores: LoginStores,
        discovery: Discovery,
        registration: Registration,
        tokens: TokenEndpoint,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        token_bytes: TokenBytes,
        tasks: Shielding,
    ) -> None:
        self._stores = stores
        self._discovery = discovery
        self._registration = registration
        self._tokens = tokens
        self._clock = clock
        self._new_id = new_id
        self._token_bytes = token_bytes
        self._tasks = tasks

    async def begin(self, server: Server, asked: LoginRequest) -> BegunLogin:
        """Begin a login at a server.

        Raises:
            NotOAuth: The server does not use OAuth.
            IssuerFailed: Its authorization server cannot be found or trusted.
            PkceUnsupported: The authorization server offers no PKCE with S256.
            NoClient: No client is configured, and none can be registered.
        """
        if server.settings.auth_kind is not AuthKind.OAUTH2:
            raise NotOAuth(server.id)
        found = await self._discovery.of(server)
        try:
            client = await self._registration.choose(
                server,
                found.server,
                redirect_uri=asked.redirect_uri,
                document_url=asked.document_url,
            )
        except (IssuerFailed, NoClient):
            # Whatever is put right there counts at the next try.
            self._discovery.forget(server)
            raise
        grant = await self._stores.grants.find(server, asked.user_id)
        earlier = (
            (*grant.granted_scopes, *grant.missing_scopes) if grant and grant.missing_scopes else ()
        )
        flow = Flow(
            id=self._new_id(),
            server_id=server.id,
            user_id=asked.user_id,
            browser_sha256=asked.browser_sha256,
            fingerprint=fingerprint_of(server.settings),
            terms=Terms(
                issuer=found.server.issuer,
                resource=found.resource,
                token_url=found.server.token_url,
                revocation_url=found.server.revocation_url,
                client_id=client.client_id,
                client_kind=client.kind,
                auth_method=client.auth_method,
                redirect_uri=asked.redirect_uri,
            ),
            sends_issuer=found.server.sends_issuer,
            scopes=merged_scopes(found.scopes, earlier),
            verifier=secret_text(self._token_bytes(SECRET_BYTES)),
        )
        state, now = secret_text(self._token_bytes(SECRET_BYTES)), self._clock.now()
        expires_at = now + FLOW_LIFETIME
        await self._stores.flows.begin(
            flow, sha256(state), asked.request_id, now=now, expires_at=expires_at
        )
        return BegunLogin(
            authorization_url(found.server.authorization_url, flow, state), expires_at
        )

    async def complete(self, answer: LoginAnswer) -> tuple[Server, Grant]:
        """Complete a login; a repeated request gets the first result.

        Raises:
            FlowExpired: No such login was begun, or it took too long.
            FlowConsumed: It was completed before.
            FlowMismatch: It belongs to another user or browser.
            IssuerMismatch: The answer comes from another authorization server.
            AuthorizationDeclined: The user or the authorization server declined.
            ConfigSuperseded: An admin changed the server meanwhile.
            IssuerFailed: The authorization server gives no tokens.
        """
        # A code is worth nothing the second time: a browser that hangs up does not interrupt this.
        return await self._tasks.complete(self._complete(answer))

    async def disconnect(self, server_id: str, user_id: str) -> tuple[bool, Revocation]:
        """Delete a grant, then revoke it; return whether there was one, and what became of it."""
        return await self._tasks.complete(self._disconnect(server_id, user_id))

    async def _complete(self, answer: LoginAnswer) -> tuple[Server, Grant]:
        stores, state = self._stores, sha256(answer.state)
        try:
            flow = await stores.flows.consume(state, answer.request_id, self._clock.now())
        except FlowConsumed:
            return await self._completed_before(answer, state)
        is_own_browser = hmac.compare_digest(flow.browser_sha256, sha256(answer.browser_binding))
        if flow.user_id != answer.user_id or not is_own_browser:
            raise FlowMismatch
        # Before anything else of the answer is read: it may be of a server that lies.
        if not is_answer_of(
            flow.terms.issuer, sends_issuer=flow.sends_issuer, issuer=answer.issuer
        ):
            raise IssuerMismatch
        if answer.error or not answer.code:
            raise AuthorizationDeclined(
                _printable(answer.error) or "no code", _printable(answer.error_description)
            )
        server = await self._unchanged(flow)
        try:
            secret = await self._registration.secret_of(server, flow.terms)
            tokens = await self._tokens.exchange(flow, secret or "", answer.code)
        except (GrantRefused, ClientRefused, SecretsError) as error:
            if isinstance(error, ClientRefused):
                await self._registration.forget(server.id, flow.terms)
            self._discovery.forget(server)
            problem = "it refuses the code or the client"
            raise IssuerFailed(flow.terms.issuer, problem) from error
        for _ in range(TRIES_MAX):
            grant = await stores.grants.put(server, flow, tokens, self._clock.now())
            if grant is not None:
                await stores.flows.complete(flow)
                return server, grant
            server = await self._unchanged(flow)
        raise ConfigSuperseded(flow.server_id)

    async def _completed_before(
        self, answer: LoginAnswer, state_sha256: bytes
    ) -> tuple[Server, Grant]:
        stores = self._stores
        server_id = await stores.flows.completed_server(
            state_sha256, answer.request_id, answer.user_id
        )
        server = await stores.servers.get(server_id)
        grant = await stores.grants.find(server, answer.user_id)
        if grant is None:
            raise FlowConsumed
        return server, grant

    async def _unchanged(self, flow: Flow) -> Server:
        found = await self._stores.servers.find([flow.server_id])
        server = found.get(flow.server_id)
        if server is None or fingerprint_of(server.settings) != flow.fingerprint:
            raise ConfigSuperseded(flow.server_id)
        return server

    async def _disconnect(self, server_id: str, user_id: str) -> tuple[bool, Revocation]:
        grant = await self._stores.grants.delete(server_id, user_id)
        if grant is None:
            return False, Revocation.NOT_NEEDED
        found = await self._stores.servers.find([server_id])
        server = found.get(server_id)
        if server is None or not grant.tokens.access_token:
            return True, Revocation.FAILED
        try:
            secret = await self._registration.secret_of(server, grant.terms)
        except SecretsError:
            return True, Revocation.FAILED
        return True, await self._tokens.revoke(grant.terms, secret or "", grant.tokens)


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable())[:300]
