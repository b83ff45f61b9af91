"""The specification of a process: its command, input, limits and confinement."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolrunner.journal.records import StdinMode
from toolrunner.primitives.domain import UNLIMITED, Limits
from toolrunner.sandbox import Network, Profile

#: The shell that runs command lines.
SHELL = "sh"


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """Size of a terminal."""

    rows: int = 24
    columns: int = 80


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What to run and how."""

    argv: tuple[str, ...]
    command: str  # The same as one text, for display.
    workdir: str
    environment: Mapping[str, str]
    is_background: bool
    timeout_s: float  # 0 for no limit.
    log_bytes_max: int
    stdin_mode: StdinMode = StdinMode.CLOSED
    needs_owner: bool = False  # Whether it ends unless an attachment owns it.
    stdin: bytes = b""  # The initial input; with closed input, all of it.
    terminal: TerminalSize = TerminalSize()  # Of a process whose input is one.
    profile: Profile | None = None  # None for the most restrictive that can be enforced.
    network: Network | None = None  # None for the most restrictive that can be enforced.
    limits: Limits = UNLIMITED  # The limits of the caller, in addition to those of the node.
