"""Probe every mechanism on this machine, each in a child, and return why one does not work.

This runs in a separate program (`python -m toolrunner.sandbox`), because it forks.
"""

import errno
import os
import platform
import signal
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress

from toolrunner.sandbox import landlock, seccomp
from toolrunner.sandbox.confinement import Confinement
from toolrunner.sandbox.control_groups import CONTROLLERS, found_groups, own_group
from toolrunner.sandbox.launch import change_user
from toolrunner.sandbox.namespaces import make_namespaces
from toolrunner.sandbox.syscalls import (
    CAP_DAC_OVERRIDE,
    CAP_DAC_READ_SEARCH,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    PR_SET_NO_NEW_PRIVS,
    call,
    prctl,
    unshare,
)
from toolrunner.sandbox.user_limits import bound_namespace
from toolrunner.sandbox.values import NAMESPACES, Layer, Level, Network, Profile, Trials

SYSCTLS = {
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/user/max_user_namespaces": "0",
}
#: The errno of a probe that exited without a result.
_DIED = errno.ECHILD


def try_all(*, uid: int, reachable: tuple[str, ...]) -> Trials:
    """Run all probes once.

    Args:
        uid: A user of workspaces, for a service that runs as root.
        reachable: Paths that this user has to reach.
    """
    abi = landlock.version()
    failures: dict[Layer, str] = {}

    def attempt(layer: Layer, work: Callable[[], None], cause: Callable[[int], str]) -> None:
        if error := outcome(work):
            failures[layer] = cause(error)

    attempt(Layer.NO_NEW_PRIVILEGES, lambda: prctl(PR_SET_NO_NEW_PRIVS, 1), _said("prctl"))
    attempt(Layer.SECCOMP, _try_seccomp, _said("seccomp"))
    attempt(Layer.LANDLOCK_FILES, lambda: _try_landlock(abi), _landlock_cause)
    attempt(Layer.UID, lambda: _try_user(uid), _user_cause)
    for layer, flags in (
        (Layer.USER_NAMESPACE, 0),
        (Layer.MOUNT_NAMESPACE, CLONE_NEWNS),
        (Layer.PID_NAMESPACE, CLONE_NEWPID),
        (Layer.NETWORK_NAMESPACE, CLONE_NEWNET),
    ):
        attempt(layer, lambda flags=flags: unshare(CLONE_NEWUSER | flags), _namespace_cause)  # type: ignore[misc]
    is_reachable = outcome(lambda: _try_reaching(uid, reachable)) == 0
    kept_capability = 0 if is_reachable else _kept_capability(uid, reachable)
    has_own_proc = bounds_users = True
    if not any(layer in failures for layer in NAMESPACES):
        has_own_proc = _try_whole(uid, failures)
        bounds_users = outcome(_try_bounds) == 0
    if cause := _group_cause():
        failures[Layer.CGROUP] = cause
    return Trials(
        is_root=os.geteuid() == 0,
        landlock_abi=0 if Layer.LANDLOCK_FILES in failures else abi,
        kernel=platform.release(),
        failures=failures,
        has_own_proc=has_own_proc,
        is_reachable=is_reachable,
        kept_capability=kept_capability,
        bounds_users=bounds_users,
    )


def outcome(work: Callable[[], None]) -> int:
    """Run a function in a child; return 0 if it succeeded, else the errno."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        error = _DIED
        try:
            work()
            error = 0
        except OSError as failed:
            error = failed.errno or _DIED
        finally:
            os.write(writing, struct.pack("=i", error))
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        received = file.read(4)
    os.waitpid(pid, 0)
    return int(struct.unpack("=i", received)[0]) if len(received) == 4 else _DIED


def _try_seccomp() -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    try:
        program = seccomp.program(
            seccomp.FilterOptions(has_paths=False, has_tcp=False, has_udp=False)
        )
    except KeyError as error:
        raise OSError(errno.ENOSYS, "the calls of this machine are not known") from error
    seccomp.install(program)
    with suppress(PermissionError):
        unshare(0)
        raise OSError(errno.ENOSYS, "the filter does not hold")


def _try_landlock(abi: int) -> None:
    if abi == 0:
        # Call again to get the errno.
        call("landlock_create_ruleset", None, 0, landlock.VERSION_FLAG)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict(landlock.Rules(readable=("/usr",), writable=()), abi)
    with suppress(PermissionError):
        os.close(os.open("/etc/passwd", os.O_RDONLY))
        raise OSError(errno.ENOSYS, "the rules do not hold")


def _try_user(uid: int, kept_capability: int = 0) -> None:
    if os.geteuid() != 0:
        raise OSError(errno.EPERM, "not root")
    change_user(uid, kept_capability)


def _kept_capability(uid: int, reachable: tuple[str, ...]) -> int:
    """Return the weakest capability with which a user reaches all paths; 0 if there is none."""
    for capability in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE):
        if outcome(lambda with_=capability: _try_reaching(uid, reachable, with_)) == 0:  # type: ignore[misc]
            return capability
    return 0


def _try_reaching(uid: int, reachable: tuple[str, ...], kept_capability: int = 0) -> None:
    _try_user(uid, kept_capability)
    for path in reachable:
        if not os.access(path, os.X_OK):
            raise OSError(errno.EACCES, path)


def _try_whole(uid: int, failures: dict[Layer, str]) -> bool:
    """Build a namespace set and its tree, like a workspace's; return whether it has a /proc."""
    with tempfile.TemporaryDirectory() as directory:
        confinement = Confinement(
            level=Level.NS,
            layers=(*NAMESPACES,),
            profile=Profile.READ_ONLY,
            network=Network.NONE,
            root=directory,
            home=directory,
            temporary=directory,
            uid=uid if os.geteuid() == 0 and Layer.UID not in failures else -1,
        )
        try:
            namespace_set = make_namespaces(confinement)
        except OSError as error:
            failures[Layer.USER_NAMESPACE] = _namespace_cause(error.errno or _DIED)
            return False
        try:
            for has_own_proc in (True, False):
                given = Confinement.of({**confinement.document(), "has_own_proc": has_own_proc})
                with suppress(OSError):
                    namespace_set.trees.clear()
                    namespace_set.tree(given)
                    return has_own_proc
            failures[Layer.MOUNT_NAMESPACE] = "the files of a workspace cannot be mounted"
            return False
        finally:
            namespace_set.close()
            os.waitpid(namespace_set.first, 0)


def _try_bounds() -> None:
    unshare(CLONE_NEWUSER)
    bound_namespace({})


def _group_cause() -> str:
    try:
        group = own_group()
    except OSError:
        return "there is no cgroup v2"
    if not os.access(group, os.W_OK):
        return "the cgroup v2 of this process is not its own to write to"
    with suppress(OSError), open(os.path.join(group, "cgroup.controllers")) as file:
        lacking = CONTROLLERS - set(file.read().split())
        # On some machines these are still in v1 hierarchies.
        lacking -= {name for name, path in found_groups().items() if os.access(path, os.W_OK)}
        return f"its group has no controller for {', '.join(sorted(lacking))}" if lacking else ""
    return "its controllers cannot be read"


def _said(what: str) -> Callable[[int], str]:
    return lambda error: f"{what} says: {os.strerror(error)}"


def _landlock_cause(error: int) -> str:
    match error:
        case errno.ENOSYS:
            return "this kernel has no Landlock"
        case errno.EOPNOTSUPP:
            return "Landlock is not among the security modules that this kernel was started with"
        case errno.EPERM | errno.EACCES:
            return "a seccomp profile denies the calls of Landlock"
        case _:
            return f"Landlock says: {os.strerror(error)}"


def _user_cause(error: int) -> str:
    if os.geteuid() != 0:
        return "the service is not root, so it cannot change the user"
    return f"the user cannot be changed: {os.strerror(error)}"


def _namespace_cause(error: int) -> str:
    for path, value in SYSCTLS.items():
        with suppress(OSError), open(path) as file:
            if file.read().strip() == value:
                return f"{path.removeprefix('/proc/sys/').replace('/', '.')} is {value}"
    match error:
        case errno.EPERM | errno.EACCES:
            return "a seccomp profile or a security module denies namespaces"
        case errno.ENOSPC | errno.EUSERS:
            return "no more namespaces may be made (user.max_user_namespaces)"
        case errno.EINVAL | errno.ENOSYS:
            return "this kernel has no such namespaces"
        case _:
            return f"the kernel says: {os.strerror(error)}"


def reset_signals() -> None:
    """Restore the default of SIGCHLD, so that waitpid works whatever was inherited."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
