"""The settings of mcpgateway."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from parley.egress.policy import Policy
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
    demo_server_url: HttpUrl | None = setting(
        "An MCP server to offer to everyone under the slug demo.", default=None
    )
