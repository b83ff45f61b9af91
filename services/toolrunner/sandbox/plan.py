"""The confinement plan: computed from what a node offers and what a call asks for."""

from dataclasses import dataclass, replace

from toolrunner.sandbox.confinement import Confinement
from toolrunner.sandbox.errors import BelowMinimum, NotEnforceable
from toolrunner.sandbox.landlock import ABI_NETWORK, ABI_SCOPES
from toolrunner.sandbox.remedies import missing_of
from toolrunner.sandbox.values import (
    NAMESPACES,
    ORDER,
    Layer,
    Level,
    Network,
    Profile,
    Report,
    Trials,
    isolating,
)

ALWAYS = frozenset({Layer.DESCRIPTORS, Layer.RLIMITS, Layer.CGROUP})
FILTERS = frozenset(
    {Layer.NO_NEW_PRIVILEGES, Layer.LANDLOCK_FILES, Layer.LANDLOCK_NETWORK, Layer.SECCOMP}
)
#: The layers that a level may use; those that do not work are omitted unless the level needs them.
LAYERS = {
    Level.NONE: ALWAYS,
    Level.UID: ALWAYS | {Layer.UID, Layer.NO_NEW_PRIVILEGES, Layer.SECCOMP},
    Level.LANDLOCK: ALWAYS | {Layer.UID} | FILTERS,
    Level.NS: ALWAYS | {Layer.UID} | FILTERS | NAMESPACES,
}
UNREACHABLE = "the service's data directory or its Python is closed to other users"
SHARED_USER = "a workspace whose files belong to the user of the service"
#: The port of the egress proxy on the loopback of a workspace with its own network namespace.
PROXY_PORT = 3128
#: Commands run at a lower priority than the services.
NICE = 5


@dataclass(frozen=True, slots=True)
class SandboxPaths:
    """The directories of a workspace, and their owner.

    Attributes:
        uid: The workspace's own user; -1 if it has none.
        readable: Other paths that its processes may read.
        may_watch: Whether its processes may watch directories with inotify where paths of others
            are not hidden.
    """

    root: str
    home: str
    temporary: str
    uid: int = -1
    readable: tuple[str, ...] = ()
    may_watch: bool = False


@dataclass(frozen=True, slots=True)
class Egress:
    """The egress proxy, with its port where workspaces share the host's network."""

    port: int


def judge(trials: Trials, *, minimum: Level, forced: Level | None = None) -> Report:
    """Return the report of a node.

    Args:
        trials: The results of the probes.
        minimum: The weakest level to accept.
        forced: A level not to exceed, for tests.

    Raises:
        BelowMinimum: The level is below the minimum.
    """
    applied = level_of(trials)
    if forced is not None:
        applied = min(applied, forced)
    if applied < Level.NS:
        trials = outside(trials, is_walled=applied is Level.LANDLOCK)
    layers = tuple(
        layer for layer in ORDER if layer in LAYERS.get(applied, ()) and trials.works(layer)
    )
    level = isolating(applied, layers)
    needs_capability = applied is Level.LANDLOCK and Layer.UID in layers and not trials.is_reachable
    report = Report(
        level=level,
        minimum=minimum,
        layers=layers,
        missing=missing_of(trials),
        landlock_abi=trials.landlock_abi,
        kernel=trials.kernel,
        is_root=trials.is_root,
        has_own_proc=trials.has_own_proc,
        kept_capability=trials.kept_capability if needs_capability else 0,
    )
    if level < minimum:
        raise BelowMinimum(report)
    return report


def level_of(trials: Trials) -> Level:
    """Return the strongest level whose layers all work, whatever level they count as."""
    is_filtered = trials.works(Layer.NO_NEW_PRIVILEGES, Layer.SECCOMP)
    if is_filtered and trials.works(*NAMESPACES):
        return Level.NS
    walled = outside(trials, is_walled=True)
    # Where processes share the service's user, only Landlock prevents their signals to it.
    is_apart = walled.works(Layer.UID) or walled.landlock_abi >= ABI_SCOPES
    if is_filtered and walled.works(Layer.LANDLOCK_FILES) and is_apart:
        return Level.LANDLOCK
    return Level.UID if outside(trials, is_walled=False).works(Layer.UID) else Level.NONE


def outside(trials: Trials, *, is_walled: bool) -> Trials:
    """Return what works where workspaces access the host's directories.

    Args:
        trials: What works.
        is_walled: Whether Landlock restricts the paths; only then may the capability be used.
    """
    if trials.is_reachable or not trials.works(Layer.UID) or (is_walled and trials.kept_capability):
        return trials
    return replace(trials, failures={**trials.failures, Layer.UID: UNREACHABLE})


def plan(
    report: Report,
    *,
    paths: SandboxPaths,
    profile: Profile | None = None,
    network: Network | None = None,
    processes: int = 0,
    egress: Egress | None = None,
) -> Confinement:
    """Return how to confine a process.

    Args:
        report: The report of the node.
        paths: The workspace.
        profile: What it may write; None for the most restrictive that the node can enforce.
        network: What it may reach; None for the most restrictive that the node can enforce.
        processes: How many processes the workspace may have at a time; 0 for no limit.
        egress: Its proxy, if it has one.

    Raises:
        NotEnforceable: The node cannot enforce the requested confinement.
    """
    if paths.uid < 0:
        _check_shared_user(report)
    reached = _network(report, network, egress)
    written = _profile(report, profile)
    layers = [layer for layer in report.layers if _is_applied(layer, report, reached, paths)]
    port = 0
    if reached is Network.PROXY and egress is not None:
        port = PROXY_PORT if Layer.NETWORK_NAMESPACE in layers else egress.port
    return Confinement(
        level=isolating(report.level, layers),
        layers=tuple(layers),
        profile=written,
        network=reached,
        root=paths.root,
        home=paths.home,
        temporary=paths.temporary,
        uid=paths.uid if Layer.UID in layers else -1,
        kept_capability=report.kept_capability if Layer.UID in layers else 0,
        readable=paths.readable,
        proxy_port=port,
        has_own_proc=report.has_own_proc,
        landlock_abi=report.landlock_abi,
        processes=processes,
        nice=NICE,
        may_watch=paths.may_watch,
    )


def _check_shared_user(report: Report) -> None:
    """Refuse workspaces of the service's own user where only another user would confine them."""
    if report.applied is Level.UID:
        raise NotEnforceable(report.level, Level.LANDLOCK, SHARED_USER)
    is_apart = Layer.UID not in report.layers or report.landlock_abi >= ABI_SCOPES
    if report.applied is Level.LANDLOCK and not is_apart:
        raise NotEnforceable(report.level, Level.NS, SHARED_USER)


def _is_applied(layer: Layer, report: Report, network: Network, paths: SandboxPaths) -> bool:
    match layer:
        case Layer.UID:
            return paths.uid >= 0
        case Layer.NETWORK_NAMESPACE:
            return network is not Network.OPEN
        case Layer.LANDLOCK_NETWORK:
            # In its own network namespace a workspace may listen and connect without restriction.
            is_apart = Layer.NETWORK_NAMESPACE in report.layers
            return network is not Network.OPEN and not is_apart
        case _:
            return True


def _network(report: Report, asked: Network | None, egress: Egress | None) -> Network:
    """Return the effective network mode; `OPEN` by default where the node cannot confine."""
    can_confine = report.applied >= Level.LANDLOCK
    match asked:
        case Network.OPEN:
            return Network.OPEN
        case None if not can_confine:
            return Network.OPEN
        case None | Network.NONE if can_confine:
            return Network.NONE
        case Network.PROXY if can_confine:
            if egress is None:
                # More restrictive than requested, never less.
                return Network.NONE
            has_ports = report.applied >= Level.NS or report.landlock_abi >= ABI_NETWORK
            return Network.PROXY if has_ports else Network.NONE
        case _:
            raise NotEnforceable(report.level, Level.LANDLOCK, "a closed network")


def _profile(report: Report, asked: Profile | None) -> Profile:
    if asked is None:
        return Profile.READ_ONLY if report.applied >= Level.LANDLOCK else Profile.FULL
    if asked is Profile.READ_ONLY and report.applied < Level.LANDLOCK:
        raise NotEnforceable(report.level, Level.LANDLOCK, "a read-only workspace")
    if asked is Profile.WORKSPACE_WRITE and report.applied < Level.NS:
        # Only a mount can make a file read-only in a writable directory.
        return Profile.FULL
    return asked
