"""People, groups and tokens, put together over the tables of this service."""

from dataclasses import dataclass

from gateway.authentication import Authentication
from gateway.group_store import GroupStore
from gateway.groups import Groups
from gateway.identity_store import IdentityStore
from gateway.recent_keys import RecentKeys
from gateway.revocation_feed import RevocationFeed
from gateway.scopes import known_scopes
from gateway.service_tokens import ServiceTokens
from gateway.settings import GatewaySettings
from gateway.sign_in_watch import SignInWatch
from gateway.token_store import TokenStore
from gateway.user_store import UserStore
from gateway.users import Users
from parley.bus import Bus
from parley.identity import Signer
from parley.postgres import Database
from parley.process import Process


@dataclass(frozen=True, slots=True)
class Identity:
    """People, groups and tokens, as both servers need them."""

    people: IdentityStore
    keys: RecentKeys
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
    """Return who signs in, over the tables of this service."""
    people, tokens, clock = IdentityStore(database), TokenStore(database), process.clock
    group_store = GroupStore(database)
    keys = RecentKeys(people.find_api_key, clock)
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
