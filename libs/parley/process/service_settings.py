"""The settings that every service has, and which of the advertised addresses is its own."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

import psutil

from parley.clock import Clock
from parley.rpc import LIMITS, Address
from parley.settings import ConfigurationError, setting
from parley.telemetry import LogFormat, LogLevel


class Environment(StrEnum):
    """The environment of a process, which decides how much it reveals."""

    DEVELOPMENT = "development"
    PRODUCTION = "production"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The settings that precede a service's own; derive from it, keyword-only."""

    listen: Address = setting("The address where the service's gRPC side listens.")
    advertise: tuple[Address, ...] = setting(
        "The address others reach it by, if that is not the one it listens on. Of several it takes "
        "its own: the one whose host is this machine and whose port is the one it listens on.",
        default=(),
    )
    trust_file: Path = setting("The file with the public keys of the services it believes.")
    signing_key_file: Path = setting("The file with the private key its own tokens are signed by.")
    tls_directory: Path | None = setting(
        "The directory with ca.pem, certificate.pem and key.pem; needed for tls: addresses.",
        default=None,
    )
    parent_pid: int | None = setting(
        "The process that started it and with which it ends.", default=None, at_least=1
    )
    environment: Environment = setting(
        "In production there is no reflection and no core dump.", default=Environment.PRODUCTION
    )
    log_level: LogLevel = setting("The least severe level it logs.", default=LogLevel.INFO)
    log_format: LogFormat = setting(
        "Log lines for people (text) or for machines (json).", default=LogFormat.TEXT
    )
    user_grpc_calls_max: int = setting(
        "gRPC calls that may run for one user of service tokens, streams included.",
        default=LIMITS.user_calls_max,
        at_least=1,
    )
    metrics_listen: str | None = setting(
        "The host:port where GET /metrics answers in the Prometheus format.", default=None
    )
    otlp_endpoint: str | None = setting(
        "The OpenTelemetry collector's gRPC address, http://host:port or https://host:port.",
        default=None,
    )

    @property
    def address(self) -> Address:
        """The address at which other services reach it."""
        return self.advertise[0] if self.advertise else self.listen


#: Names of containers can be resolved only a short time after their start.
PATIENCE_S: Final = 30.0
RETRY_S: Final = 0.5

S = TypeVar("S", bound=ServiceSettings)
Resolve = Callable[[str], Awaitable[frozenset[str]]]


async def with_own_address(settings: S, clock: Clock, resolve: Resolve | None = None) -> S:
    """Return the settings with this process's own address as the only one advertised.

    Raises:
        ConfigurationError: several are advertised, and not exactly one of them is its own.
    """
    if len(settings.advertise) < 2:
        return settings
    candidates = [each for each in settings.advertise if each.port == settings.listen.port]
    own_hosts = _own_hosts()
    give_up_at = clock.monotonic() + PATIENCE_S
    while True:
        resolved = [(each, await (resolve or _resolved)(each.host)) for each in candidates]
        found = [each for each, hosts in resolved if hosts & own_hosts]
        if len(found) == 1:
            return replace(settings, advertise=(found[0],))
        if len(found) > 1 or clock.monotonic() >= give_up_at:
            break
        await clock.sleep(RETRY_S)
    listed = ", ".join(map(str, settings.advertise))
    problem = "several are" if found else "none is"
    raise ConfigurationError(
        f"of the addresses to advertise ({listed}) {problem} this machine's on port "
        f"{settings.listen.port}: name all replicas by host names of their own"
    )


def _own_hosts() -> frozenset[str]:
    return frozenset(
        address.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6)
    )


async def _resolved(host: str) -> frozenset[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return frozenset()
    return frozenset(str(entry[4][0]) for entry in found)
