"""The settings that every service has."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from parley.rpc import LIMITS, Address
from parley.settings import setting
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
