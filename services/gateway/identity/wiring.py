"""Wiring of users, groups and tokens over the tables of this service."""

from dataclasses import dataclass

from gateway.http.authentication import Authentication
from gateway.http.sign_in_watch import SignInWatch
from gateway.identity.engine.api_key_cache import ApiKeyCache
from gateway.identity.engine.groups import Groups
from gateway.identity.engine.revocation_feed import RevocationFeed
from gateway.identity.engine.scopes import known_scopes
from gateway.identity.engine.service_tokens import ServiceTokens
from gateway.identity.engine.users import Users
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.groups import GroupStore
from gateway.identity.store.service_tokens import TokenStore
from gateway.identity.store.users import UserStore
from gateway.settings import GatewaySettings
from parley.bus import Bus
from parley.identity import Signer
from parley.postgres import Database
from parley.process import Process


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity components that both servers use."""

    people: IdentityStore
    keys: ApiKeyCache
    authentication: Authentication
    sign_ins: SignInWatch
    tokens: ServiceTokens
    users: Users
    group_store: GroupStore
    groups: Groups
    feed: RevocationFeed


def open_identity(
    settings: GatewaySettings, database: Database, bus: Bus, signer: Signer, process: Process
) -> Identity:
    """Return the identity components."""
    people, tokens, clock = IdentityStore(database), TokenStore(database), process.clock
    group_store = GroupStore(database)
    keys = ApiKeyCache(people.find_api_key, clock)
    authentication = Authentication(people, keys, public_url=settings.public_url, clock=clock)
    service_tokens = ServiceTokens(
        tokens,
        people,
        signer=signer,
        bus=bus,
        clock=clock,
        new_id=process.new_id,
        scopes=known_scopes(),
    )
    return Identity(
        people,
        keys,
        authentication,
        SignInWatch(authentication, clock=clock),
        service_tokens,
        Users(
            UserStore(database),
            people,
            bus=bus,
            clock=clock,
            new_id=process.new_id,
            changed=keys.forget,
        ),
        group_store,
        Groups(group_store, bus=bus, clock=clock, new_id=process.new_id),
        RevocationFeed(tokens, bus=bus, clock=clock),
    )
