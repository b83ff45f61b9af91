"""The settings of mcpgateway."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from parley.egress.policy import Policy
from parley.instance_file import SUFFIX
from parley.process import ServiceSettings
from parley.rpc import Address
from parley.settings import Secret, setting


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """The endpoint of an MCP server."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an http or https URL.

        Raises:
            ValueError: The text is not such a URL.
        """
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{text!r} is not an http or https URL")
        return cls(text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ServiceSettings):
    """Settings of one mcpgateway process."""

    database_url: Secret = setting("The PostgreSQL database, as the role that owns schema mcp.")
    database_connections_max: int = setting(
        "Connections this process opens at most.", default=12, at_least=4
    )
    master_key_file: Path = setting("The keyring that seals the secrets of MCP servers.")
    gateway: tuple[Address, ...] = setting(
        "Addresses of the gateways, which know the revoked service tokens; without one, service "
        "tokens are refused.",
        default=(),
    )
    allowed_hosts: Policy = setting(
        "Comma-separated places that may be private or plain HTTP: HOST:PORT, .SUFFIX of a domain, "
        "or a CIDR such as 10.0.0.0/8.",
        default=Policy(),
    )
    public_url: HttpUrl | None = setting(
        "Where browsers reach the gateway; without it, calls whose login lapsed fail instead of "
        "waiting for a new one.",
        default=None,
    )
    recorded_calls_kept_days: int = setting(
        "Days for which the record of calls is kept.", default=90, at_least=1
    )
    instance_file: Path | None = setting(
        "A file of its own, *.instance on a local file system, that this process holds locked. The "
        "other processes of mcpgateway with files in the same directory, which nothing else has "
        "files in, learn from the locks who has died: calls and renewals of logins need not wait "
        "for the end of a lease.",
        default=None,
    )
    demo_server_url: HttpUrl | None = setting(
        "An MCP server to offer to everyone under the slug demo.", default=None
    )

    def __post_init__(self) -> None:
        if self.instance_file is not None and self.instance_file.suffix != SUFFIX:
            raise ValueError(f"MCPGATEWAY_INSTANCE_FILE does not end with {SUFFIX}: rename it")
