"""Apply the layers to this process, in their order, between fork and exec."""

import os
import resource

from toolrunner.sandbox import host_paths as places
from toolrunner.sandbox import landlock, seccomp
from toolrunner.sandbox.confinement import Confinement
from toolrunner.sandbox.errors import LayerFailed
from toolrunner.sandbox.syscalls import (
    NO_SETUID_FIXUP,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_SECUREBITS,
    bound_capabilities,
    drop_capabilities,
    inherit_capability,
    keep_capability,
    prctl,
)
from toolrunner.sandbox.values import Layer, Network, Profile


def prepared_filter(confinement: Confinement) -> bytes:
    """Return the seccomp filter; built before the fork, so that it is cached for later children."""
    if not confinement.has(Layer.SECCOMP):
        return b""
    is_apart = confinement.has(Layer.NETWORK_NAMESPACE)
    is_hidden = confinement.has(Layer.MOUNT_NAMESPACE)
    may_write = confinement.profile is not Profile.READ_ONLY
    openings = seccomp.FilterOptions(
        # Landlock does not check connections to UNIX socket paths, so only hiding the paths helps.
        # A read-only mount does not refuse them either, and descriptors can be sent over them.
        has_paths=is_hidden and may_write,
        has_tcp=is_apart or confinement.network is not Network.NONE,
        has_udp=is_apart or confinement.network is Network.OPEN,
        keeps_attributes=not may_write and not is_hidden,
        keeps_sizes=not may_write
        and not is_hidden
        and confinement.landlock_abi < landlock.ABI_TRUNCATE,
        # The IPC namespace is created together with the pid namespace.
        shares_objects=not confinement.has(Layer.PID_NAMESPACE),
        shares_user=not confinement.has(Layer.PID_NAMESPACE) and not confinement.has(Layer.UID),
        # Without Landlock the directory permissions decide which paths are visible and watchable.
        keeps_names=confinement.has(Layer.LANDLOCK_FILES)
        and not is_hidden
        and not confinement.may_watch,
        keeps_mark=True,
        # Only root can inspect processes that made themselves non-dumpable.
        stays_visible=not confinement.has(Layer.UID),
    )
    return seccomp.program(openings)


def tasks_now() -> int:
    """Return the number of tasks of the machine."""
    with open("/proc/loadavg") as file:
        return int(file.read().split()[3].partition("/")[2])


def limit(confinement: Confinement) -> None:
    """Set the limits that apply to a user; those of each process were set before."""
    if processes := confinement.processes:
        if not confinement.counts_processes:
            # The kernel counts all processes of a user, so the existing ones are added.
            processes += tasks_now()
        ceiling = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        bound = processes if ceiling == resource.RLIM_INFINITY else min(processes, ceiling)
        resource.setrlimit(resource.RLIMIT_NPROC, (bound, bound))
    if confinement.nice:
        os.nice(confinement.nice)


def confine(confinement: Confinement, filter: bytes) -> None:
    """Apply the layers that remain once descriptors are in place and namespaces are entered.

    Raises:
        LayerFailed: One could not be applied.
    """
    has_own_user = confinement.has(Layer.UID)
    steps = {
        Layer.RLIMITS: lambda: limit(confinement),
        Layer.UID: lambda: change_user(confinement.uid, confinement.kept_capability),
        Layer.NO_NEW_PRIVILEGES: lambda: _renounce(
            has_own_user=has_own_user, kept_capability=confinement.kept_capability
        ),
        Layer.LANDLOCK_FILES: lambda: landlock.restrict(
            rules_of(confinement), confinement.landlock_abi
        ),
        Layer.SECCOMP: lambda: seccomp.install(filter),
    }
    for layer in confinement.layers:
        step = steps.get(layer)
        if step is None:
            continue
        try:
            step()
        except OSError as error:
            raise LayerFailed(layer, error.errno or 0) from error
        except ValueError as error:
            raise LayerFailed(layer, 0) from error


def _renounce(*, has_own_user: bool, kept_capability: int) -> None:
    if not has_own_user:
        bound_capabilities()
    if not kept_capability:
        drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def change_user(uid: int, kept_capability: int = 0) -> None:
    """Change to the workspace's own user, with its own group and no other.

    Args:
        uid: The user.
        kept_capability: A capability to keep, also across exec; 0 for none.
    """
    if kept_capability:
        # So that access(2) takes the capability into account, and not only open(2).
        prctl(PR_SET_SECUREBITS, NO_SETUID_FIXUP)
        inherit_capability(kept_capability)
    # Before the change: afterwards the process lacks the capability to do so.
    bound_capabilities()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if kept_capability:
        keep_capability(kept_capability)


def rules_of(confinement: Confinement) -> landlock.Rules:
    """Return the Landlock rules: no more than the mounts show, and less where there are none."""
    is_hidden = confinement.has(Layer.MOUNT_NAMESPACE)
    is_apart = confinement.has(Layer.NETWORK_NAMESPACE)
    confines_tcp = confinement.has(Layer.LANDLOCK_NETWORK)
    is_open = confinement.network is Network.OPEN
    resolvers = places.RESOLVERS if is_open else ()
    seen = (*places.PROGRAMS, *places.SETTINGS, *resolvers, *places.KERNEL_FACTS)
    written = (*confinement.writable, *(("/dev/shm", *places.TEMPORARY) if is_hidden else ()))
    scopes = 0 if is_apart else landlock.SCOPE_ABSTRACT_SOCKETS
    is_reader = confinement.profile is Profile.READ_ONLY
    if not confinement.has(Layer.PID_NAMESPACE) and (is_reader or not confinement.has(Layer.UID)):
        # The processes have the user of the service, or of others that may write, so nothing else
        # prevents signals to these.
        scopes |= landlock.SCOPE_SIGNALS
    own = (confinement.root, confinement.home, confinement.temporary)
    terminals = ("/dev/pts", "/dev/ptmx") if is_hidden else ()
    return landlock.Rules(
        readable=("/",) if is_hidden else (*seen, *confinement.readable, *own),
        writable=written,
        devices=(*places.DEVICES, *terminals),
        confines_tcp=confines_tcp,
        ports=(confinement.proxy_port,) if confines_tcp and confinement.proxy_port else (),
        scopes=scopes,
    )
