"""Messages about a mechanism that does not work: the effect, and how to enable it."""

from toolrunner.sandbox.landlock import ABI_NETWORK, ABI_SCOPES
from toolrunner.sandbox.values import Layer, Missing, Trials

_ALLOW_NAMESPACES = (
    "in a container, run it with docs/seccomp.json as its seccomp profile; on Ubuntu, set "
    "kernel.apparmor_restrict_unprivileged_userns=0; elsewhere see user.max_user_namespaces; "
    "on Kubernetes, use a RuntimeClass such as gvisor"
)
_NEWER_KERNEL = "run a kernel of 5.13 or newer with landlock among its security modules"

#: The effect, and how to enable it.
_WORDS: dict[Layer, tuple[str, str]] = {
    Layer.CGROUP: (
        "memory and processors are bounded for each process and not for a workspace as a whole, "
        "and stopping one has to find its processes",
        "delegate a cgroup v2 to the service (systemd: Delegate=yes; container: "
        "--cgroupns=private with a writable /sys/fs/cgroup)",
    ),
    Layer.RLIMITS: (
        "at level ns workspaces share inotify instances and watches with the services and with one "
        "another, unless each has a user",
        "let the service write /proc/sys/user (a container engine mounts /proc/sys read-only), or "
        "run it as root",
    ),
    Layer.UID: (
        "commands have the service's own user. Inside of namespaces that is harmless; without them "
        "they may change the modes, owners and times of all its files, which Landlock does not "
        "prevent, so Landlock alone counts as level none",
        "run the service as root, with its data directory and its Python where other users may "
        "walk to them (mode o+x), as below /var/lib and /usr/local; or allow user namespaces",
    ),
    Layer.USER_NAMESPACE: (
        "level ns is out of reach: commands share the host's processes and network stack",
        _ALLOW_NAMESPACES,
    ),
    Layer.MOUNT_NAMESPACE: (
        "paths of the host are refused instead of hidden, and git's hooks and configuration "
        "cannot be kept from being written",
        _ALLOW_NAMESPACES,
    ),
    Layer.PID_NAMESPACE: (
        "commands share the host's list of processes, and stopping a workspace has to find them",
        _ALLOW_NAMESPACES,
    ),
    Layer.NETWORK_NAMESPACE: (
        "a closed network means that no socket can be made, so commands of a workspace do not "
        "reach one another either",
        _ALLOW_NAMESPACES,
    ),
    Layer.NO_NEW_PRIVILEGES: ("setuid programs may gain rights", "run a kernel of 3.5 or newer"),
    Layer.LANDLOCK_FILES: ("level landlock is out of reach", _NEWER_KERNEL),
    Layer.LANDLOCK_NETWORK: (
        "the egress proxy cannot be the only port, so at level landlock there is no network",
        "run a kernel of 6.7 or newer",
    ),
    Layer.SECCOMP: (
        "dangerous system calls are not refused, so no level above uid is reached",
        "run a kernel with CONFIG_SECCOMP_FILTER on x86-64 or arm64",
    ),
    Layer.VM: (
        "a flaw of the kernel is not kept from commands",
        "put each workspace into a virtual machine of its own, or on Kubernetes use a "
        "RuntimeClass such as kata or gvisor; see docs/sandbox.md",
    ),
}


def missing_of(trials: Trials) -> tuple[Missing, ...]:
    """Return the mechanisms that do not work, with texts."""
    causes = dict(trials.failures)
    if Layer.LANDLOCK_FILES not in causes and trials.landlock_abi < ABI_NETWORK:
        causes[Layer.LANDLOCK_NETWORK] = f"Landlock ABI {trials.landlock_abi} knows no ports"
    if not trials.is_root and trials.landlock_abi < ABI_SCOPES and Layer.UID in causes:
        causes[Layer.UID] += f"; Landlock ABI {trials.landlock_abi} does not hold signals back"
    if not trials.bounds_users:
        causes[Layer.RLIMITS] = "/proc/sys/user cannot be written in a user namespace"
    causes[Layer.VM] = "this node starts no virtual machines"
    return tuple(Missing(layer, cause, *_WORDS[layer]) for layer, cause in sorted(causes.items()))
