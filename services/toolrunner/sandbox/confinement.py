"""The confinement of one process, and its encoding for the spawner."""

from dataclasses import dataclass
from typing import Any

from toolrunner.sandbox.values import Layer, Level, Network, Profile, Used


@dataclass(frozen=True, slots=True)
class Confinement:
    """The layers for one process, in order, and their parameters.

    Attributes:
        uid: The workspace's own user and group; -1 to keep that of the service.
        kept_capability: The one capability that this user keeps, to traverse directories without
            permission to paths that Landlock allows; 0 for none.
        root: The files of the workspace.
        home: The home of its processes.
        temporary: Its temporary directory; of a process that may only read it is its own.
        readable: Paths that may be read and executed besides the system's programs.
        proxy_port: Port of the egress proxy on loopback; in a network namespace that of its
            listener. 0 for none.
        has_own_proc: Whether the mount namespace gets a /proc of its own.
        landlock_abi: Version of Landlock.
        processes: How many processes its user may have at a time; 0 for no limit.
        nice: The nice value that is added.
        may_watch: Whether it may watch directories with inotify where paths are not hidden; only
            for programs of the node, which watch nothing but the workspace.
    """

    level: Level
    layers: tuple[Layer, ...]
    profile: Profile
    network: Network
    root: str
    home: str
    temporary: str
    uid: int = -1
    kept_capability: int = 0
    readable: tuple[str, ...] = ()
    proxy_port: int = 0
    has_own_proc: bool = True
    landlock_abi: int = 0
    processes: int = 0
    nice: int = 0
    may_watch: bool = False

    def has(self, layer: Layer) -> bool:
        """Return whether a layer is to be applied."""
        return layer in self.layers

    @property
    def counts_processes(self) -> bool:
        """Whether the process count of its user contains only processes of the workspace."""
        return self.has(Layer.UID) or self.has(Layer.USER_NAMESPACE)

    @property
    def writable(self) -> tuple[str, ...]:
        """Directories of the workspace that may be written."""
        if self.profile is Profile.READ_ONLY:
            return (self.temporary,)
        return (self.root, self.home, self.temporary)

    @property
    def has_scratch(self) -> bool:
        """Whether its temporary directories are its own, mounted for it and gone with it."""
        return self.profile is Profile.READ_ONLY and self.has(Layer.MOUNT_NAMESPACE)

    @property
    def used(self) -> Used:
        """The confinement as it is reported for a process."""
        return Used(self.level, self.layers, self.profile, self.network)

    def document(self) -> dict[str, Any]:
        """Return this as a JSON-compatible document for the spawner."""
        # `asdict` would deep-copy it first.
        document = {name: getattr(self, name) for name in self.__slots__}
        # The name that spawners of this protocol version know.
        document["passage"] = document.pop("kept_capability")
        return document

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Confinement":
        """Decode a document."""
        named = {**document, "kept_capability": document["passage"]}
        del named["passage"]
        fields: dict[str, Any] = {
            **named,
            "level": Level(document["level"]),
            "layers": tuple(Layer(number) for number in document["layers"]),
            "profile": Profile(document["profile"]),
            "network": Network(document["network"]),
            "readable": tuple(document["readable"]),
        }
        return cls(**fields)
