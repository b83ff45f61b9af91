"""Wiring of logins."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mcpgateway.oauth.engine.discovery import Discovery
from mcpgateway.oauth.engine.grants import UserGrants
from mcpgateway.oauth.engine.issuer_http import IssuerHttp
from mcpgateway.oauth.engine.logins import LoginStores, UserLogins
from mcpgateway.oauth.engine.registration import Registration
from mcpgateway.oauth.engine.renewal import Renewal
from mcpgateway.oauth.engine.tokens import TokenEndpoint
from mcpgateway.oauth.store.clients import Clients
from mcpgateway.oauth.store.flows import Flows
from mcpgateway.oauth.store.grants import GrantStore
from mcpgateway.servers.store import Servers
from parley.egress.policy import Policy
from parley.postgres import Database
from parley.process import Process
from parley.secrets import SecretBox
from parley.tasks import ShieldedTasks


@dataclass(frozen=True, slots=True)
class OpenLogins:
    """Everything about logins in a process."""

    logins: UserLogins
    grants: UserGrants
    store: GrantStore


@asynccontextmanager
async def open_logins(
    database: Database,
    box: SecretBox,
    servers: Servers,
    policy: Policy,
    process: Process,
    process_id: str,
) -> AsyncIterator[OpenLogins]:
    """Yield the logins of a process; at the end, renewals in progress are completed."""
    clock = process.clock
    async with IssuerHttp.open(policy) as http, ShieldedTasks() as tasks:
        store = GrantStore(database, box, process_id)
        registration = Registration(servers, Clients(database, box), http, clock)
        endpoint = TokenEndpoint(http)
        renewal = Renewal(store, registration, endpoint, clock, tasks)
        logins = UserLogins(
            LoginStores(servers, Flows(database, box), store),
            Discovery(http, clock),
            registration,
            endpoint,
            clock=clock,
            new_id=process.new_id,
            token_bytes=os.urandom,
            tasks=tasks,
        )
        yield OpenLogins(logins, UserGrants(store, renewal, clock), store)
