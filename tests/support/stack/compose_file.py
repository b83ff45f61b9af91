"""compose.yaml as a value, and as processes of this machine instead of containers."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from parley.rpc import Address
from support.host.ports import free_ports

FILE = Path(__file__).resolve().parents[3] / "compose.yaml"

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^${}]*))?\}")
_PATH = re.compile(r"(?<![\w/:.])/[\w./-]+")
_LOCAL_HOST = re.compile(r"\b(?:0\.0\.0\.0|127\.0\.0\.1):(\d+)\b")
_HEALTH_SHELLS = ("CMD",)


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume in a container; without a name it is the container's own."""

    target: str
    volume: str | None


@dataclass(frozen=True, slots=True)
class ComposeService:
    """What compose.yaml says of one service, as far as a process of this machine can follow."""

    name: str
    replicas: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    health: tuple[str, ...]
    #: Ports that somebody listens on inside the container.
    ports: tuple[int, ...]


def interpolated(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` with its ${NAME:-default} replaced, inner ones first."""
    while _VARIABLE.search(text):
        text = _VARIABLE.sub(lambda found: variables.get(found[1]) or found[2] or "", text)
    return text


def document(variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the file as Compose reads it: anchors merged, variables replaced."""
    text = FILE.read_text()
    name = yaml.safe_load(text)["name"]
    found: dict[str, Any] = yaml.safe_load(
        interpolated(text, {"COMPOSE_PROJECT_NAME": name, **(variables or {})})
    )
    return found


def services(found: Mapping[str, Any]) -> dict[str, ComposeService]:
    """Return the services of a document by their names."""
    return {name: _service(name, given) for name, given in found["services"].items()}


def _service(name: str, given: Mapping[str, Any]) -> ComposeService:
    environment = {key: str(value) for key, value in given.get("environment", {}).items()}
    health = tuple(given.get("healthcheck", {}).get("test", ()))
    listening = [value for key, value in environment.items() if key.endswith("LISTEN")]
    return ComposeService(
        name=name,
        replicas=int(given.get("deploy", {}).get("replicas", 1)),
        command=tuple(given.get("command", ())),
        environment=environment,
        mounts=tuple(_mount(each) for each in given.get("volumes", ())),
        health=health[1:] if health[:1] == _HEALTH_SHELLS else health,
        ports=tuple(int(port) for text in listening for port in _LOCAL_HOST.findall(text)),
    )


def _mount(text: str) -> Mount:
    parts = text.split(":")
    return Mount(parts[0], None) if len(parts) == 1 else Mount(parts[1], parts[0])


@dataclass(frozen=True, slots=True)
class Replica:
    """One container of a service; they are numbered from 1, as Compose does."""

    service: ComposeService
    number: int

    @property
    def name(self) -> str:
        """Return the name it would have in the project, without that of the project."""
        return f"{self.service.name}-{self.number}"


class Placement:
    """Where on this machine things are that compose.yaml knows by container, volume and port.

    This is the only place where what runs here differs from what is in the file: host names become
    127.0.0.1 with a port for each replica, and volumes become directories.
    """

    def __init__(
        self, project: str, replicas: Iterable[Replica], root: Path, given: Mapping[str, int]
    ) -> None:
        """Choose ports and directories.

        Args:
            project: The name of the Compose project.
            replicas: Every process there will be.
            root: Where the volumes are.
            given: Places such as "postgres:5432" that are on a port already.
        """
        self._root = root
        self._ports: dict[tuple[str, int], int] = {}
        self._places = dict(given)
        replicas = tuple(replicas)
        wanted = [(replica, port) for replica in replicas for port in replica.service.ports]
        for (replica, port), chosen in zip(wanted, free_ports(len(wanted)), strict=True):
            self._ports[replica.name, port] = chosen
            self._places[f"{project}-{replica.name}:{port}"] = chosen
            self._places.setdefault(f"{replica.service.name}:{port}", chosen)

    def port(self, replica: Replica, port: int) -> int:
        """Return where on this machine the replica's port is."""
        return self._ports[replica.name, port]

    def here(self, text: str, replica: Replica) -> str:
        """Return a word of the file as the replica is to read it on this machine."""
        text = ",".join(each for part in text.split(",") for each in Address.expanded(part))
        text = _PATH.sub(lambda found: self._path(found[0], replica), text)
        text = _LOCAL_HOST.sub(lambda found: self._own(found, replica), text)
        for place in sorted(self._places, key=len, reverse=True):
            text = re.sub(
                rf"(?<![\w-]){re.escape(place)}\b", f"127.0.0.1:{self._places[place]}", text
            )
        return text

    def prepare(self, replica: Replica) -> None:
        """Make the replica's directories: each volume once, and a link where it is mounted."""
        for mount in replica.service.mounts:
            volume = self._root / "volumes" / (mount.volume or f"of-{replica.name}")
            volume.mkdir(mode=0o700, parents=True, exist_ok=True)
            link = self.directory(replica, mount.target)
            link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            link.symlink_to(volume)

    def directory(self, replica: Replica, target: str) -> Path:
        """Return what an absolute path in the container is on this machine."""
        return self._root / replica.name / target.removeprefix("/")

    def command(self, words: Iterable[str], replica: Replica) -> list[str]:
        """Return a command of the file as it is to be run here."""
        return [self.here(word, replica) for word in words]

    def environment(self, replica: Replica, programs: Path) -> dict[str, str]:
        """Return the replica's environment, with what an image would add to it."""
        given = replica.service.environment
        return {
            "PATH": f"{programs}{os.pathsep}{os.defpath}",
            "HOME": str(self._root),
            **{name: self.here(value, replica) for name, value in given.items()},
        }

    def _path(self, path: str, replica: Replica) -> str:
        """Return a path in a volume, or one that leads to volumes, as it is on this machine."""
        targets = [mount.target for mount in replica.service.mounts]
        is_ours = any(
            f"{path}/".startswith(f"{target}/") or target.startswith(f"{path}/")
            for target in targets
        )
        return str(self.directory(replica, path)) if is_ours else path

    def _own(self, found: re.Match[str], replica: Replica) -> str:
        port = self._ports.get((replica.name, int(found[1])))
        return found[0] if port is None else f"127.0.0.1:{port}"
