"""The settings of toolrunner, all read from variables that start with TOOLRUNNER_."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from parley.process import Environment, ServiceSettings
from parley.rpc import Address
from parley.settings import setting
from toolrunner.directories.users import DEFAULT_RANGE, UserRange
from toolrunner.egress.domain.hosts import HostPort
from toolrunner.egress.domain.policy import Preset
from toolrunner.primitives.domain import Limits, Quota
from toolrunner.sandbox import Level
from toolrunner.workspaces.domain.spec import LocalDirectory
from toolrunner.workspaces.sources.mirrors import MirrorBounds

DAY_S = 86_400


class SandboxLevel(StrEnum):
    """How strongly commands are confined, strongest first."""

    NS = "ns"
    LANDLOCK = "landlock"
    UID = "uid"
    NONE = "none"

    @property
    def level(self) -> Level:
        """The level of the sandbox package."""
        return Level[self.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ServiceSettings):
    """The settings of one toolrunner; it runs untrusted code, so they contain no secret."""

    data_directory: Path = setting(
        "The directory of its journal and its workspaces; each toolrunner needs its own."
    )
    data_directory_shared: bool = setting(
        "Whether several toolrunners are given the same data directory; each then uses the one "
        "inside that is named after its own address.",
        default=False,
    )
    adoption_s: float = setting(
        "How long processes outlive a toolrunner that was killed, until the next one takes over.",
        default=30.0,
        at_least=0,
    )
    process_open_files: int = setting(
        "How many files each process may have open; 0 for as many as toolrunner.",
        default=4096,
        at_least=0,
    )
    process_file_bytes: int = setting(
        "How long a file may become that a process writes, in bytes; 0 for no limit.",
        default=16 * 1024**3,
        at_least=0,
    )
    process_cpu_s: int = setting(
        "Processor time that each process may use, in seconds; 0 for no limit.",
        default=24 * 3600,
        at_least=0,
    )
    process_memory_bytes: int = setting(
        "Memory that each process may fill with data, in bytes; 0 for no limit. Where toolrunner "
        "may use control groups, this holds for a process with all that it starts.",
        default=8 * 1024**3,
        at_least=0,
    )
    process_pids: int = setting(
        "Processes and threads that a process may have at a time with all that it starts, where "
        "toolrunner may use control groups; 0 for no limit.",
        default=512,
        at_least=0,
    )
    process_cpu_millicores: int = setting(
        "Share of the processors that a process may have with all that it starts, in thousandths "
        "of a core, where toolrunner may use control groups; 0 for no limit.",
        default=0,
        at_least=0,
    )
    control_groups: bool = setting(
        "Whether it makes control groups for workspaces, where it may.", default=True
    )
    workspace_memory_bytes: int = setting(
        "Memory that a workspace may use with all that runs in it, in bytes, unless its template "
        "says otherwise; 0 for no limit.",
        default=8 * 1024**3,
        at_least=0,
    )
    workspace_disk_bytes: int = setting(
        "Disk that a workspace may use, in bytes, unless its template says otherwise; 0 for no "
        "limit.",
        default=10 * 1024**3,
        at_least=0,
    )
    workspace_inodes: int = setting(
        "Files and directories that a workspace may have, unless its template says otherwise; 0 "
        "for no limit.",
        default=1_000_000,
        at_least=0,
    )
    sandbox_minimum: SandboxLevel = setting(
        "The weakest sandbox to run commands in; below it the service does not start.",
        default=SandboxLevel.LANDLOCK,
    )
    sandbox_level: SandboxLevel | None = setting(
        "For tests: the sandbox level not to go beyond, however much the machine offers.",
        default=None,
    )
    first_user: int = setting(
        "As root: the first user id that a workspace can get. The two below it are the node's own. "
        "Nodes of one machine need different users; `parley up` divides the range among its nodes.",
        default=DEFAULT_RANGE.first,
        at_least=0,
    )
    users_max: int = setting(
        "As root: how many user ids workspaces can get, from the first one on; each workspace "
        "keeps its own until it is removed.",
        default=DEFAULT_RANGE.count,
        at_least=1,
    )
    faultpoints_directory: Path | None = setting(
        "For tests of failures, never in production: the directory that arms faults.", default=None
    )
    chatd: tuple[Address, ...] = setting(
        "Addresses of the chatd processes it registers with.", default=()
    )

    name: str = setting("The name of this node for people; the host's if not set.", default="")
    labels: tuple[str, ...] = setting(
        "Labels of this node, as in zone=a; templates may ask for them.", default=()
    )
    workspaces_max: int = setting(
        "How many workspaces that are not stopped it takes.", default=100, at_least=1
    )
    local_directories: tuple[LocalDirectory, ...] = setting(
        "Directories it offers to local workspaces, as name=/path, or name=/path;overlay for "
        "those that may be used only under an overlay.",
        default=(),
    )
    git_protocols: tuple[str, ...] = setting(
        "Transports that git may fetch repositories by; file reads every repository of the node.",
        default=("https", "ssh"),
    )
    git_private_hosts: tuple[str, ...] = setting(
        "Hosts that git may fetch repositories from though their addresses are not public, in "
        "lower case.",
        default=(),
    )
    git_mirrors_max: int = setting(
        "How many repositories it keeps a mirror of; those not used for longest go first.",
        default=100,
        at_least=1,
    )
    git_mirrors_bytes: int = setting(
        "How much of the disk all mirrors may take, in bytes; no repository may be larger.",
        default=20 * 1024**3,
        at_least=1,
    )
    git_mirrors_days: float = setting(
        "How long a mirror is kept that nobody uses, in days.", default=30.0, at_least=0
    )
    egress_private_hosts: tuple[HostPort, ...] = setting(
        "Services of the node's own network that workspaces may reach through the egress proxy if "
        "their policy allows them, each as HOST:PORT.",
        default=(),
    )
    egress_presets: tuple[Preset, ...] = setting(
        "Lists of hosts that policies of workspaces may name, such as the package indexes and "
        "mirrors of this house, each as NAME=HOST HOST:PORT.",
        default=(),
    )
    egress_authorities_file: Path | None = setting(
        "Certificates of authorities, as PEM, that the egress proxy believes besides those of the "
        "system where it adds secrets itself; for services of the node's own network.",
        default=None,
    )
    removed_kept_s: float = setting(
        "Seconds that the journal keeps the calls and commands of a removed workspace, so that "
        "the answer to an interrupted request can still be given.",
        default=60.0,
        at_least=1,
    )
    leaves_at_stop: bool = setting(
        "Whether it tells chatd at its stop that it leaves, so that its workspaces count as "
        "stopped at once; without, a restart goes unnoticed if it is quick.",
        default=False,
    )

    @property
    def process_limits(self) -> Limits:
        """The limits of every process."""
        return Limits(
            open_files=self.process_open_files,
            file_bytes=self.process_file_bytes,
            cpu_s=self.process_cpu_s,
            memory_bytes=self.process_memory_bytes,
            pids=self.process_pids,
            cpu_millicores=self.process_cpu_millicores,
        )

    @property
    def quota(self) -> Quota:
        """The default quota of a workspace."""
        return Quota(
            memory_bytes=self.workspace_memory_bytes,
            disk_bytes=self.workspace_disk_bytes,
            inodes=self.workspace_inodes,
            pids=self.process_pids,
        )

    @property
    def user_range(self) -> UserRange:
        """The users of this node."""
        return UserRange(self.first_user, self.users_max)

    @property
    def git_limits(self) -> Limits:
        """The limits of the node's own git."""
        return self.process_limits.narrowed(Limits(file_bytes=self.git_mirrors_bytes))

    @property
    def mirror_bounds(self) -> MirrorBounds:
        """The limits on mirrors."""
        age_s = self.git_mirrors_days * DAY_S
        return MirrorBounds(self.git_mirrors_max, self.git_mirrors_bytes, age_s)

    def __post_init__(self) -> None:
        if problem := self.user_range.problem():
            raise ValueError(
                f"the range of TOOLRUNNER_FIRST_USER={self.first_user} and "
                f"TOOLRUNNER_USERS_MAX={self.users_max} {problem}; choose another one"
            )
        if self.faultpoints_directory and self.environment is Environment.PRODUCTION:
            raise ValueError(
                "TOOLRUNNER_FAULTPOINTS_DIRECTORY is not for production: unset it, or set "
                "TOOLRUNNER_ENVIRONMENT=development"
            )
