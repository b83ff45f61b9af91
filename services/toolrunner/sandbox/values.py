"""Values of the sandbox: levels, layers, profiles, probe results, requests and reports.

Numbers are those of the proto, so that they are the same in a journal, on a pipe and in messages.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import IntEnum


class Level(IntEnum):
    """How strong a confinement is; higher is stronger."""

    NONE = 1
    UID = 2
    LANDLOCK = 3
    NS = 4
    VM = 5

    @property
    def word(self) -> str:
        """The name in settings and messages."""
        return self.name.lower()


class Layer(IntEnum):
    """One mechanism of confinement."""

    DESCRIPTORS = 1
    RLIMITS = 2
    CGROUP = 3
    UID = 4
    USER_NAMESPACE = 5
    MOUNT_NAMESPACE = 6
    PID_NAMESPACE = 7
    NETWORK_NAMESPACE = 8
    NO_NEW_PRIVILEGES = 9
    LANDLOCK_FILES = 10
    LANDLOCK_NETWORK = 11
    SECCOMP = 12
    VM = 13

    @property
    def word(self) -> str:
        """The name in messages."""
        return self.name.lower().replace("_", " ")


class Profile(IntEnum):
    """Which files may be written."""

    READ_ONLY = 1
    WORKSPACE_WRITE = 2
    FULL = 3


class Network(IntEnum):
    """Which network addresses may be reached."""

    NONE = 1
    PROXY = 2
    OPEN = 3


#: The order in which the launcher applies them. Namespaces come before the user id: the user that
#: mounts the directories of a workspace must be able to traverse their parents, and the workspace's
#: own user must not.
ORDER = (
    Layer.VM,
    Layer.CGROUP,
    Layer.USER_NAMESPACE,
    Layer.PID_NAMESPACE,
    Layer.NETWORK_NAMESPACE,
    Layer.MOUNT_NAMESPACE,
    Layer.DESCRIPTORS,
    Layer.RLIMITS,
    Layer.UID,
    Layer.NO_NEW_PRIVILEGES,
    Layer.LANDLOCK_FILES,
    Layer.LANDLOCK_NETWORK,
    Layer.SECCOMP,
)


@dataclass(frozen=True, slots=True)
class Missing:
    """A mechanism that a node lacks: the cause, the effect, and how to enable it."""

    layer: Layer
    cause: str
    effect: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Trials:
    """The results of the probes of all mechanisms.

    Attributes:
        is_root: Whether the service runs as root.
        landlock_abi: Version of the interface; 0 without Landlock.
        kernel: Release of the kernel.
        failures: Why a mechanism does not work, by mechanism; those that work are not in it.
        has_own_proc: Whether a mount namespace can have a /proc of its own.
        is_reachable: Whether other users can traverse to the service's data and programs; without
            that the user is only changed inside of a mount namespace, or with `kept_capability`.
        kept_capability: The capability with which they can do so anyway; 0 for none.
        bounds_users: Whether a user namespace can have its own limits.
    """

    is_root: bool
    landlock_abi: int
    kernel: str
    failures: dict[Layer, str] = field(default_factory=dict)
    has_own_proc: bool = True
    is_reachable: bool = True
    kept_capability: int = 0
    bounds_users: bool = True

    def works(self, *layers: Layer) -> bool:
        """Return whether all of these work."""
        return not any(layer in self.failures for layer in layers)


#: The namespaces of level `ns`.
NAMESPACES = frozenset(
    {
        Layer.USER_NAMESPACE,
        Layer.PID_NAMESPACE,
        Layer.NETWORK_NAMESPACE,
        Layer.MOUNT_NAMESPACE,
    }
)


def isolating(applied: Level, layers: Collection[Layer]) -> Level:
    """Return the level that applied layers count as.

    Landlock checks opening, not changes of the mode, owner and times of a file, which its owner may
    make. So where commands have the user of the service, Landlock alone does not isolate them from
    it.
    """
    return Level.NONE if applied is Level.LANDLOCK and Layer.UID not in layers else applied


@dataclass(frozen=True, slots=True)
class Report:
    """The sandbox that a node offers, and the configured minimum.

    Attributes:
        level: The level that its layers count as.
        minimum: The weakest level that the settings accept.
    """

    level: Level
    minimum: Level
    layers: tuple[Layer, ...]
    missing: tuple[Missing, ...]
    landlock_abi: int
    kernel: str
    is_root: bool = False
    has_own_proc: bool = False
    kept_capability: int = (
        0  # The capability that workspace users need to reach their files; 0 for none.
    )

    @property
    def applied(self) -> Level:
        """The level whose layers are applied; above `level` where these do not isolate."""
        if NAMESPACES.issubset(self.layers):
            return Level.NS
        if Layer.LANDLOCK_FILES in self.layers:
            return Level.LANDLOCK
        return Level.UID if Layer.UID in self.layers else Level.NONE

    @property
    def summary(self) -> str:
        """One paragraph of text for operators."""
        first = f'Sandbox level "{self.level.word}"'
        if self.applied is not self.level:
            first += f' (the layers of "{self.applied.word}" are applied and do not isolate)'
        abi = f", Landlock ABI {self.landlock_abi}" if self.landlock_abi else ""
        lacking = [
            f"Not active: {each.layer.word} ({each.cause}). Effect: {each.effect}. "
            f"To have it: {each.remedy}."
            for each in self.missing
        ]
        return " ".join((f"{first} on kernel {self.kernel}{abi}.", *lacking))


@dataclass(frozen=True, slots=True)
class Used:
    """The confinement that was actually applied to a process."""

    level: Level
    layers: tuple[Layer, ...]
    profile: Profile
    network: Network
