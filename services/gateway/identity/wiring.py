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
from gateway.identity.rpc.groups import GroupServicer
from gateway.identity.rpc.service_tokens import ServiceTokenServicer
from gateway.identity.rpc.users import UserServicer
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.groups import GroupStore
from gateway.identity.store.service_tokens import TokenStore
from gateway.identity.store.users import UserStore
from gateway.settings import GatewaySettings
from parley.bus import Bus
from parley.identity import Signer, Trust
from parley.postgres import Database
from parley.process import Process


@dataclass(frozen=True, slots=True)
class Servicers:
    """The gRPC services, which the HTTP routes call in this process."""

    users: UserServicer
    groups: GroupServicer
    tokens: ServiceTokenServicer


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity components that both servers use."""

    people: IdentityStore
    keys: ApiKeyCache
    authentication: Authentication
    sign_ins: SignInWatch
    feed: RevocationFeed
    servicers: Servicers


def open_identity(
    settings: GatewaySettings, database: Database, bus: Bus, signer: Signer, process: Process
) -> Identity:
    """Return the identity components."""
    people, tokens, clock = IdentityStore(database), TokenStore(database), process.clock
    group_store, trust = GroupStore(database), Trust(settings.trust_file, clock)
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
        is_trusted=lambda key_id: trust.find(key_id) is not None,
    )
    users = Users(
        UserStore(database),
        people,
        bus=bus,
        clock=clock,
        new_id=process.new_id,
        changed=keys.forget,
    )
    groups = Groups(group_store, bus=bus, clock=clock, new_id=process.new_id)
    feed = RevocationFeed(tokens, bus=bus, clock=clock)
    return Identity(
        people,
        keys,
        authentication,
        SignInWatch(authentication, clock=clock),
        feed,
        Servicers(
            UserServicer(people, users, group_store),
            GroupServicer(group_store, groups, people),
            ServiceTokenServicer(service_tokens, feed, clock=clock),
        ),
    )
