"""The settings of toolrunner, all read from variables that start with TOOLRUNNER_."""

from dataclasses import dataclass
from pathlib import Path

from parley.process import Environment, ServiceSettings
from parley.rpc import Address
from parley.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ServiceSettings):
    """What one toolrunner needs to know; it runs hostile code, so no secret is among it."""

    data_directory: Path = setting(
        "The directory of its journal and its workspaces; each toolrunner needs its own."
    )
    adoption_s: float = setting(
        "How long processes outlive a toolrunner that was killed, until the next one takes over.",
        default=30.0,
        at_least=0,
    )
    faultpoints_directory: Path | None = setting(
        "For tests of failures, never in production: the directory that arms faults.", default=None
    )
    chatd: tuple[Address, ...] = setting(
        "Addresses of the chatd processes it registers with.", default=()
    )

    def __post_init__(self) -> None:
        if self.faultpoints_directory and self.environment is Environment.PRODUCTION:
            raise ValueError(
                "TOOLRUNNER_FAULTPOINTS_DIRECTORY is not for production: unset it, or set "
                "TOOLRUNNER_ENVIRONMENT=development"
            )
