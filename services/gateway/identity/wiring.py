"""Wiring of users, groups and tokens over the tables of this service."""

import os
from dataclasses import dataclass, fields

from gateway.audit_log.rpc.servicer import AuditLogServicer
from gateway.audit_log.wiring import AuditComponents
from gateway.http.authentication import Authentication
from gateway.http.cors import Cors
from gateway.http.sign_in_watch import SignInWatch
from gateway.identity.domain import OidcIssuer
from gateway.identity.engine.account_exports import AccountExports
from gateway.identity.engine.api_key_cache import ApiKeyCache
from gateway.identity.engine.api_keys import ApiKeys
from gateway.identity.engine.attempts import Attempts
from gateway.identity.engine.breached_passwords import BreachedPasswords
from gateway.identity.engine.groups import Groups
from gateway.identity.engine.identity_links import IdentityLinks
from gateway.identity.engine.oidc_administration import OidcAdministration
from gateway.identity.engine.oidc_issuers import OidcIssuers
from gateway.identity.engine.oidc_sign_in import OidcSignIns
from gateway.identity.engine.own_sessions import OwnSessions
from gateway.identity.engine.passkeys import Passkeys
from gateway.identity.engine.passwords import Passwords, processes_for
from gateway.identity.engine.revocation_feed import RevocationFeed
from gateway.identity.engine.scopes import known_scopes
from gateway.identity.engine.second_factors import SecondFactors
from gateway.identity.engine.service_tokens import ServiceTokens
from gateway.identity.engine.sign_in import SignIns
from gateway.identity.engine.sign_in_links import SignInLinks
from gateway.identity.engine.users import Users
from gateway.identity.rpc.account_exports import AccountExportServicer
from gateway.identity.rpc.api_keys import ApiKeyServicer
from gateway.identity.rpc.groups import GroupServicer
from gateway.identity.rpc.oidc_issuers import LinkedIdentityServicer, OidcIssuerServicer
from gateway.identity.rpc.second_factors import SecondFactorServicer
from gateway.identity.rpc.service_tokens import ServiceTokenServicer
from gateway.identity.rpc.sessions import SessionServicer, SignInLinkServicer
from gateway.identity.rpc.sign_in import SignInServicer
from gateway.identity.rpc.users import UserServicer
from gateway.identity.store.account_exports import ExportStore
from gateway.identity.store.api_keys import ApiKeyStore
from gateway.identity.store.attempts import AttemptStore
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.groups import GroupStore
from gateway.identity.store.linked_identities import LinkedIdentityStore
from gateway.identity.store.oidc_issuers import IssuerStore
from gateway.identity.store.second_factors import SecondFactorStore
from gateway.identity.store.service_tokens import TokenStore
from gateway.identity.store.sessions import SessionStore
from gateway.identity.store.sign_in_links import LinkStore
from gateway.identity.store.users import UserStore
from gateway.settings import GatewaySettings
from parley.bus import Bus
from parley.identity import Trust
from parley.postgres import Database
from parley.process import Neighbours, Process
from parley.secrets import KeyringFile, SecretBox
from parley.settings import ConfigurationError


@dataclass(frozen=True, slots=True)
class Servicers:
    """The gRPC services, which the HTTP routes call in this process."""

    users: UserServicer
    groups: GroupServicer
    tokens: ServiceTokenServicer
    sign_in: SignInServicer
    sessions: SessionServicer
    sign_in_links: SignInLinkServicer
    api_keys: ApiKeyServicer
    second_factors: SecondFactorServicer
    audit_log: AuditLogServicer
    account_exports: AccountExportServicer
    oidc_issuers: OidcIssuerServicer
    linked_identities: LinkedIdentityServicer

    @property
    def all(self) -> tuple[object, ...]:
        """All of them."""
        return tuple(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity components that both servers use."""

    people: IdentityStore
    keys: ApiKeyCache
    authentication: Authentication
    sign_ins: SignInWatch
    feed: RevocationFeed
    passwords: Passwords
    sign_in: SignIns
    own_sessions: OwnSessions
    oidc: OidcSignIns
    exports: AccountExports
    export_store: ExportStore
    servicers: Servicers


def _passwords(settings: GatewaySettings) -> Passwords:
    path = settings.breached_passwords_file
    try:
        breached = None if path is None else BreachedPasswords(path)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"GATEWAY_BREACHED_PASSWORDS_FILE cannot be used: {error}"
        ) from None
    processes = processes_for(len(os.sched_getaffinity(0)))
    return Passwords(processes=processes, breached=breached)


def open_identity(
    settings: GatewaySettings,
    database: Database,
    bus: Bus,
    neighbours: Neighbours,
    process: Process,
    keyring: KeyringFile | None,
    file_issuers: tuple[OidcIssuer, ...],
    audit: AuditComponents,
) -> Identity:
    """Return the identity components; the caller closes `passwords`."""
    clock, audit_log = process.clock, audit.log
    people, tokens = IdentityStore(database, audit_log), TokenStore(database, audit_log)
    group_store = GroupStore(database, audit_log)
    keys = ApiKeyCache(people.find_api_key, clock)
    authentication = _authentication(people, keys, settings, process)
    new_id, scopes = process.new_id, known_scopes()
    service_tokens = _service_tokens(tokens, people, neighbours, bus, settings, process)
    users = _users(UserStore(database, audit_log), people, keys, bus, process)
    groups = Groups(group_store, bus=bus, clock=clock, new_id=new_id)
    feed = RevocationFeed(tokens, bus=bus, clock=clock)
    passwords = _passwords(settings)
    attempts = Attempts(AttemptStore(database), clock)
    session_store, link_store = SessionStore(database, audit_log), LinkStore(database, audit_log)
    box = None if keyring is None else SecretBox(keyring)
    factor_store = SecondFactorStore(database, box, audit_log)
    issuer_store = IssuerStore(database, box, audit_log)
    issuers = OidcIssuers(file_issuers, issuer_store, clock)
    export_store = ExportStore(database, audit_log)
    factors = _factors(factor_store, users, attempts, settings, process)
    passkeys = _passkeys(factor_store, users, settings, process)
    sign_in = SignIns(
        people, session_store, link_store, passwords=passwords, attempts=attempts,
        factor_store=factor_store, second_factors=factors, passkeys=passkeys,
        clock=clock, new_id=new_id, token_bytes=os.urandom,
    )  # fmt: skip
    linked = LinkedIdentityStore(database, audit_log)
    oidc = _oidc(issuers, sign_in, factor_store, users, linked, group_store, settings, process)
    own_sessions = OwnSessions(
        people, session_store, passwords=passwords, attempts=attempts, clock=clock
    )
    links = _links(link_store, session_store, users, settings, process)
    exports = AccountExports(export_store, users, clock=clock, new_id=new_id)
    api_keys = _api_keys(ApiKeyStore(database, audit_log), users, scopes, keys, process)
    return Identity(
        people,
        keys,
        authentication,
        SignInWatch(authentication, clock=clock),
        feed,
        passwords,
        sign_in,
        own_sessions,
        oidc,
        exports,
        export_store,
        Servicers(
            UserServicer(people, users, group_store),
            GroupServicer(group_store, groups, people),
            ServiceTokenServicer(service_tokens, feed, clock=clock),
            SignInServicer(sign_in, passkeys, issuers, name=settings.public_url.host),
            SessionServicer(own_sessions),
            SignInLinkServicer(links),
            ApiKeyServicer(api_keys),
            SecondFactorServicer(factors, passkeys),
            audit.servicer,
            AccountExportServicer(exports, export_store),
            _issuer_servicer(issuers, issuer_store, settings, process),
            _linked_identities(issuers, linked, factor_store, process),
        ),
    )


def _authentication(
    people: IdentityStore, keys: ApiKeyCache, settings: GatewaySettings, process: Process
) -> Authentication:
    return Authentication(
        people,
        keys,
        public_url=settings.public_url,
        clock=process.clock,
        cors=Cors(settings.cors_origins),
    )


def _users(
    store: UserStore, people: IdentityStore, keys: ApiKeyCache, bus: Bus, process: Process
) -> Users:
    return Users(
        store,
        people,
        bus=bus,
        clock=process.clock,
        new_id=process.new_id,
        changed=keys.forget,
    )


def _factors(
    store: SecondFactorStore,
    users: Users,
    attempts: Attempts,
    settings: GatewaySettings,
    process: Process,
) -> SecondFactors:
    return SecondFactors(
        store,
        users,
        attempts=attempts,
        clock=process.clock,
        new_id=process.new_id,
        token_bytes=os.urandom,
        host=settings.public_url.host,
    )


def _passkeys(
    store: SecondFactorStore, users: Users, settings: GatewaySettings, process: Process
) -> Passkeys:
    return Passkeys(
        store,
        users,
        clock=process.clock,
        new_id=process.new_id,
        token_bytes=os.urandom,
        host=settings.public_url.host,
        origin=str(settings.public_url),
    )


def _links(
    store: LinkStore,
    sessions: SessionStore,
    users: Users,
    settings: GatewaySettings,
    process: Process,
) -> SignInLinks:
    return SignInLinks(
        store,
        sessions,
        users,
        public_url=str(settings.public_url),
        clock=process.clock,
        new_id=process.new_id,
        token_bytes=os.urandom,
    )


def _oidc(
    issuers: OidcIssuers,
    sign_in: SignIns,
    unfinished: SecondFactorStore,
    users: Users,
    linked: LinkedIdentityStore,
    groups: GroupStore,
    settings: GatewaySettings,
    process: Process,
) -> OidcSignIns:
    return OidcSignIns(
        issuers,
        sign_in,
        unfinished=unfinished,
        links=linked,
        users=users,
        groups=groups,
        public_url=str(settings.public_url),
        clock=process.clock,
        new_id=process.new_id,
        token_bytes=os.urandom,
    )


def _issuer_servicer(
    issuers: OidcIssuers, store: IssuerStore, settings: GatewaySettings, process: Process
) -> OidcIssuerServicer:
    administration = OidcAdministration(issuers, store, clock=process.clock, new_id=process.new_id)
    return OidcIssuerServicer(administration, public_url=str(settings.public_url))


def _linked_identities(
    issuers: OidcIssuers,
    linked: LinkedIdentityStore,
    unfinished: SecondFactorStore,
    process: Process,
) -> LinkedIdentityServicer:
    links = IdentityLinks(
        issuers, linked, unfinished=unfinished, clock=process.clock, token_bytes=os.urandom
    )
    return LinkedIdentityServicer(links)


def _api_keys(
    store: ApiKeyStore,
    users: Users,
    scopes: tuple[str, ...],
    keys: ApiKeyCache,
    process: Process,
) -> ApiKeys:
    return ApiKeys(
        store,
        users,
        scopes=scopes,
        clock=process.clock,
        token_bytes=os.urandom,
        changed=keys.forget,
    )


def _service_tokens(
    tokens: TokenStore,
    people: IdentityStore,
    neighbours: Neighbours,
    bus: Bus,
    settings: GatewaySettings,
    process: Process,
) -> ServiceTokens:
    trust = Trust(settings.trust_file, process.clock)
    return ServiceTokens(
        tokens,
        people,
        signer=neighbours.signer,
        bus=bus,
        clock=process.clock,
        new_id=process.new_id,
        scopes=known_scopes(),
        is_trusted=lambda key_id: trust.find(key_id) is not None,
    )
