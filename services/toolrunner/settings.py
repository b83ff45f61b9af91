"""The settings of toolrunner, all read from variables that start with TOOLRUNNER_."""

from dataclasses import dataclass
from pathlib import Path

from parley.process import ServiceSettings
from parley.rpc import Address
from parley.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ServiceSettings):
    """What one toolrunner needs to know; it runs hostile code, so no secret is among it."""

    data_directory: Path = setting(
        "The directory of its journal and its workspaces; each toolrunner needs its own."
    )
    chatd: tuple[Address, ...] = setting(
        "Addresses of the chatd processes it registers with.", default=()
    )
