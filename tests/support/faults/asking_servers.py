"""MCP servers whose running calls ask a person: for an answer, or to sign in again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, cast

from gateway.http.addresses import HttpAddress
from parley.api.mcp.v1 import server_pb2
from parley.identity import Role, User, UserId
from support.faults.delegating_server import ALLOWED_HOSTS, SLUG, registered, until_offered
from support.faults.lab import FaultLab
from support.mcpgateway.authorization_server import fake_authorization_server
from support.mcpgateway.gateway import McpGateway
from support.mcpgateway.logins import LoginLab
from support.mcpgateway.servers import eliciting_process, until_listening
from support.stack.mcp_authorization import authorizing

BEGUN = f'call: {SLUG}__count {{"name": "none"}}'
PAINTED = f'call: {SLUG}__count {{"name": "paint"}}'
WHOAMI = f"call: {SLUG}__whoami {{}}"
OWNER = "SELECT owner_id::text, owner_role FROM chat.chats WHERE id = $1::uuid"


class AskingServer(Protocol):
    """A server, and what people do at it."""

    async def made_to_ask(self) -> None:
        """Let the next calls ask."""
        ...

    async def made_answerable(self) -> None:
        """Do what a person does before they answer."""
        ...

    async def calls(self) -> int:
        """Return how many calls have taken effect."""
        ...


class NoServer:
    """Nothing: the chats ask by themselves."""

    async def made_to_ask(self) -> None:
        """Do nothing."""

    async def made_answerable(self) -> None:
        """Do nothing."""

    async def calls(self) -> int:
        """Return that there are none."""
        return 0


@dataclass(frozen=True, slots=True)
class ElicitingServer(NoServer):
    """A server whose tool asks for a colour."""

    lab: FaultLab

    async def calls(self) -> int:
        """Return how often the tool that asks began."""
        said = await (await self.lab.client()).ask(PAINTED)
        return int(said.partition("```\n")[2].partition("\n```")[0])


@dataclass(frozen=True, slots=True)
class GuardedServer:
    """A server at which the user of the chats has to be signed in."""

    lab: FaultLab
    logins: LoginLab
    user: User

    async def made_to_ask(self) -> None:
        """Let every chatd know the tool, and then let the login end at the server."""
        await self.made_answerable()
        await until_offered(self.lab, WHOAMI, self.logins.issuer.subject)
        for login in self.logins.issuer.logins:
            login.is_revoked = True

    async def made_answerable(self) -> None:
        """Sign in."""
        await self.logins.log_in(self.user, request_id=self.lab.unique())

    async def calls(self) -> int:
        """Return how often the tool was called."""
        return len(self.logins.issuer.calls)


@asynccontextmanager
async def eliciting(lab: FaultLab) -> AsyncIterator[ElicitingServer]:
    """Offer a tool that asks while it runs."""
    address = HttpAddress.parse(lab.stack.environment[ALLOWED_HOSTS])
    with eliciting_process(address.port, "modern"):
        await until_listening(address.port)
        async with registered(lab, f"http://{address}/mcp"):
            await until_offered(lab, BEGUN, "0")
            yield ElicitingServer(lab)


@asynccontextmanager
async def guarded(lab: FaultLab) -> AsyncIterator[GuardedServer]:
    """Offer a tool that needs a login."""
    address = HttpAddress.parse(lab.stack.environment[ALLOWED_HOSTS])
    async with (
        fake_authorization_server(address.port) as issuer,
        registered(lab, issuer.mcp_url, server_pb2.AUTH_KIND_OAUTH2) as server_id,
        authorizing(lab.stack) as gateway,
    ):
        chat = await (await lab.client()).create_chat("repeat after me: hello")
        ((owner_id, role),) = await lab.query(OWNER, chat.id)
        logins = LoginLab(cast(McpGateway, gateway), issuer, server_id)
        yield GuardedServer(lab, logins, User(UserId(owner_id), Role(role)))
