"""The settings of the gateway."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.http.access_log import AccessLogShare
from gateway.http.addresses import HttpAddress, PublicUrl
from gateway.http.forwarding import ForwardedForm
from gateway.http.limits.client_address import ProxyNetwork
from parley.process import ServiceSettings
from parley.rpc import Address, Scheme
from parley.settings import Secret, setting

#: Other services deliver their events much sooner, so that none comes after its repetition is
#: forgotten.
AUDIT_RETENTION_DAYS_MIN: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings(ServiceSettings):
    """The settings of one gateway process; variables begin with GATEWAY_."""

    http_listen: HttpAddress = setting("The host:port where HTTP is served.")
    http_connections_max: int = setting(
        "HTTP connections open at once, if the limit of open files allows so many; when all are in "
        "use, further ones are answered 503.",
        default=20_000,
        at_least=1,
    )
    address_connections_max: int = setting(
        "Connections, and requests, of one client address open at once, and never more than three "
        "times what is left for others; further ones are answered 429.",
        default=15_000,
        at_least=1,
    )
    user_requests_max: int = setting(
        "Requests of one user open at once, streams included, and never more than are left for "
        "others; further ones are answered 429.",
        default=10_000,
        at_least=1,
    )
    user_long_running_requests_max: int = setting(
        "Requests of one user open at once that wait, watch a workspace, are terminals or transfer "
        "files; further ones are answered 429.",
        default=200,
        at_least=1,
    )
    user_calls_max: int = setting(
        "Requests of one user that are carried out at a time, without those that last and with "
        "streams only until they are open; further ones wait for their turn.",
        default=64,
        at_least=1,
    )
    shared_user_calls_max: int = setting(
        "The same as GATEWAY_USER_CALLS_MAX while other users make requests too, so that none of "
        "them waits for all that one sends at once.",
        default=4,
        at_least=1,
    )
    address_requests_per_minute: int = setting(
        "Requests of one client address in a minute, of all users; further ones are answered 429. "
        "0 for no limit.",
        default=120_000,
        at_least=0,
    )
    user_requests_per_minute: int = setting(
        "Requests of one user in a minute; further ones are answered 429. 0 for no limit.",
        default=60_000,
        at_least=0,
    )
    key_requests_per_minute: int = setting(
        "Requests with one API key in a minute; further ones are answered 429. 0 for no limit.",
        default=60_000,
        at_least=0,
    )
    trusted_proxies: tuple[ProxyNetwork, ...] = setting(
        "Addresses and networks of proxies whose headers tell the client's address, scheme and "
        "host; those of all others are ignored.",
        default=(),
    )
    forwarded_headers: ForwardedForm = setting(
        "The headers that trusted proxies write: x-forwarded for X-Forwarded-For, -Proto and "
        "-Host, or forwarded for Forwarded (RFC 7239). The other ones are ignored.",
        default=ForwardedForm.X_FORWARDED,
    )
    cors_origins: tuple[PublicUrl, ...] = setting(
        "Origins such as https://app.example.com whose pages may use the API from browsers, with "
        "credentials; there are no patterns.",
        default=(),
    )
    access_log: AccessLogShare = setting(
        "Whether each request is logged when it is over: on, off, or a share such as 0.1, with "
        "which all that failed are logged nevertheless.",
        default=AccessLogShare(1.0),
    )
    public_url: PublicUrl = setting(
        "The http or https origin that clients use; links, cookies and origin checks follow it."
    )
    allowed_hosts: tuple[str, ...] = setting(
        "Further host names that requests may name, beside the public one and loopback's.",
        default=(),
    )
    database_url: Secret = setting("The PostgreSQL database, as the role that owns `identity`.")
    database_connections_max: int = setting(
        "The most connections to keep open to the database.", default=10, at_least=2
    )
    chatd: tuple[Address, ...] = setting("The addresses of the chatd processes.")
    mcpgateway: tuple[Address, ...] = setting(
        "The addresses of the mcpgateway processes.", default=()
    )
    owner_api_key: Secret = setting(
        "The API key of the owner; another value replaces the key that was set here before."
    )
    login_token: Secret | None = setting(
        "The secret of the login link, which signs the owner in once; no link works without it.",
        default=None,
    )

    master_key_file: Path | None = setting(
        "The keyring that seals the secrets of authenticator apps; without it none can be added.",
        default=None,
    )

    audit_key_file: Path | None = setting(
        "The Ed25519 key that seals entries of the audit log and signs its heads; without it, "
        "nothing of the log is signed.",
        default=None,
    )
    audit_heads_file: Path | None = setting(
        "The file that signed heads of the audit log are appended to; keep copies elsewhere.",
        default=None,
    )
    audit_retention_days: int = setting(
        "The age in days from which on entries of the audit log are pruned, behind a signed "
        "checkpoint; at least 30, or 0, which keeps all.",
        default=0,
        at_least=0,
    )

    breached_passwords_file: Path | None = setting(
        "SHA-1 hashes of passwords that are known from breaches and refused, ordered by hash, one "
        "on each line, see docs/signing-in.md.",
        default=None,
    )
    oidc_issuers_file: Path | None = setting(
        "A JSON list of the identity providers that people may sign in with, see "
        "docs/signing-in.md.",
        default=None,
    )

    def __post_init__(self) -> None:
        if not self.chatd:
            raise ValueError("GATEWAY_CHATD is empty: give at least one address")
        if (self.audit_key_file is None) != (self.audit_heads_file is None):
            raise ValueError(
                "GATEWAY_AUDIT_KEY_FILE and GATEWAY_AUDIT_HEADS_FILE belong together: set both"
            )
        if 0 < self.audit_retention_days < AUDIT_RETENTION_DAYS_MIN:
            raise ValueError(
                f"GATEWAY_AUDIT_RETENTION_DAYS is {self.audit_retention_days}: give at least "
                f"{AUDIT_RETENTION_DAYS_MIN}, or 0 to keep all entries"
            )
        if self.audit_retention_days and self.audit_key_file is None:
            raise ValueError(
                "GATEWAY_AUDIT_RETENTION_DAYS needs signed checkpoints: set "
                "GATEWAY_AUDIT_KEY_FILE and GATEWAY_AUDIT_HEADS_FILE"
            )
        addresses = (self.listen, *self.chatd, *self.mcpgateway)
        if self.tls_directory is None and any(each.scheme is Scheme.TLS for each in addresses):
            raise ValueError(
                "GATEWAY_TLS_DIRECTORY is not set, and tls: addresses need it: set it to the "
                "directory with ca.pem, certificate.pem and key.pem"
            )
