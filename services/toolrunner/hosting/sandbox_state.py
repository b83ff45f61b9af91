"""What the sandbox of this node offers, as hosting needs to know it."""

from dataclasses import dataclass
from typing import Protocol

from toolrunner.hosting.recipes import SandboxLevel


@dataclass(frozen=True, slots=True)
class MissingLayer:
    """A mechanism that the node lacks, and how to get it."""

    layer: str
    cause: str
    effect: str
    remedy: str


@dataclass(frozen=True, slots=True)
class SandboxState:
    """What a probe found; names of layers are those of the proto."""

    level: SandboxLevel = SandboxLevel.NONE
    minimum: SandboxLevel = SandboxLevel.NONE
    layers: tuple[str, ...] = ()
    missing: tuple[MissingLayer, ...] = ()
    landlock_abi: int = 0
    kernel: str = ""
    summary: str = "Nothing confines the processes of this node."


class SandboxProbe(Protocol):
    """Knows what the sandbox offers."""

    @property
    def state(self) -> SandboxState:
        """What it offers."""
        ...


@dataclass(frozen=True, slots=True)
class NoSandbox:
    """Nothing confines."""

    state: SandboxState = SandboxState()
