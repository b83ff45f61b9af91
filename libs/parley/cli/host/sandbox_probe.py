"""The sandbox mechanisms of this machine, as found by toolrunner's own probe."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from parley.cli.stack.node_users import FIRST

PROBE_S_MAX = 30.0
ENOUGH = ("vm", "ns", "landlock")


@dataclass(frozen=True, slots=True)
class MissingLayer:
    """A mechanism that does not work here: its cause, effect and remedy."""

    layer: str
    cause: str
    effect: str
    remedy: str


@dataclass(frozen=True, slots=True)
class SandboxCapabilities:
    """The result of the probe.

    Attributes:
        level: The strongest of `ns`, `landlock`, `uid` and `none` that works.
        kernel: Release of the kernel.
        landlock_abi: 0 when the kernel has no Landlock.
        layers: Mechanisms that work, in the order in which they are applied.
        missing: Those that do not.
    """

    level: str
    kernel: str
    landlock_abi: int
    layers: tuple[str, ...]
    missing: tuple[MissingLayer, ...]

    @property
    def is_enough(self) -> bool:
        """Whether toolrunner starts with its default minimum."""
        return self.level in ENOUGH


UNKNOWN = SandboxCapabilities("none", "", 0, (), ())


def probe_sandbox(home: Path) -> SandboxCapabilities:
    """Run the probe once, as a separate program.

    Args:
        home: The directory of the workspaces, which their users must be able to reach.
    """
    nearest = next((path for path in (home, *home.parents) if path.exists()), Path("/"))
    command = (
        *(sys.executable, "-m", "toolrunner.sandbox", "--report", str(FIRST)),
        *(str(nearest), str(Path(sys.executable).resolve())),
    )
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_S_MAX,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return parse_capabilities(ended.stdout)


def parse_capabilities(printed: bytes) -> SandboxCapabilities:
    """Parse the output of the probe."""
    document = json.loads(printed)
    return SandboxCapabilities(
        level=document["level"],
        kernel=document["kernel"],
        landlock_abi=document["landlock_abi"],
        layers=tuple(document["layers"]),
        missing=tuple(MissingLayer(**each) for each in document["missing"]),
    )
