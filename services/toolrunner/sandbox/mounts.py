"""The mount tree of a workspace: built from an empty tmpfs, with only the paths it needs."""

import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from toolrunner.sandbox import host_paths as places
from toolrunner.sandbox.confinement import Confinement
from toolrunner.sandbox.syscalls import CLONE_NEWNS, call, unshare
from toolrunner.sandbox.values import Network, Profile

AT_FDCWD = -100
AT_EMPTY_PATH, AT_RECURSIVE = 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
COPY = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH = 0x04, 0x40
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 0x1, 0x2, 0x4, 0x8
MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x2, 0x4, 0x8
MS_REC, MS_PRIVATE = 0x4000, 0x40000
MNT_DETACH = 2

#: Any directory will do; the new tree is mounted on it and replaces the root.
STAGE = "/tmp"
SAFE = ATTR_NOSUID | ATTR_NODEV
TREE_OPTIONS = b"mode=0755,size=1m,nr_inodes=2k"
#: The host has a few thousand, which all workspaces would share otherwise.
TERMINALS_MAX = 128
MEMORY_OPTIONS = b"mode=1777,size=64m,nr_inodes=1k"
#: Of the temporary files of one process.
SCRATCH_OPTIONS = b"mode=1777,size=16m,nr_inodes=4k"
_BELOW_TEMPORARY = tuple(f"{path}/" for path in places.TEMPORARY)


class Kind(NamedTuple):
    """The properties that identify a tree."""

    root: str
    inode: int  # Of the root; another directory at that path is another tree.
    profile: Profile
    network: Network
    readable: tuple[str, ...]
    git: tuple[int, ...]  # Inodes of the guarded files; another file of that name is another tree.


class Mount(NamedTuple):
    """A copy of a mount of the host, and its target path."""

    fd: int
    target: str


def kind_of(confinement: Confinement) -> Kind:
    """Return which tree a process needs.

    Raises:
        OSError: There is no such workspace.
    """
    guarded = guarded_in(confinement.root) if _guards_git(confinement) else {}
    return Kind(
        confinement.root,
        os.stat(confinement.root).st_ino,
        confinement.profile,
        confinement.network,
        confinement.readable,
        tuple(guarded.values()),
    )


def guarded_in(root: str) -> dict[str, int]:
    """Return the paths of .git, its hooks and its config, as far as they exist, with inodes."""
    found: dict[str, int] = {}
    for path, is_kind in (
        (f"{root}/.git", stat.S_ISDIR),
        (f"{root}/.git/hooks", stat.S_ISDIR),
        (f"{root}/.git/config", stat.S_ISREG),
    ):
        with suppress(OSError):
            status = os.lstat(path)
            if is_kind(status.st_mode):
                found[path] = status.st_ino
                continue
        if path.endswith(".git"):
            break
    return found


def _guards_git(confinement: Confinement) -> bool:
    return confinement.profile is Profile.WORKSPACE_WRITE


def build_tree(confinement: Confinement, proc: int = -1) -> None:
    """Replace the host's mounts with a tree of this process's own.

    Args:
        confinement: The confinement that determines its content.
        proc: A detached mount of `/proc`; -1 for none.

    Raises:
        OSError: It cannot be built; this process must not continue.
    """
    _leave_mounts()
    # All copies first: the stage hides the paths below it.
    links, mounts = _taken(confinement)
    call("mount", b"tmpfs", STAGE.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, TREE_OPTIONS)
    for path, target in links:
        os.symlink(target, STAGE + path)
    for path in places.EMPTY:
        os.makedirs(STAGE + path, exist_ok=True)
    _make_devices()
    for path in places.TEMPORARY:
        if _is_around(path, confinement):
            _mount_memory(path)
    if proc >= 0:
        os.mkdir(STAGE + "/proc")
        _put(Mount(os.dup(proc), STAGE + "/proc"))
    for mount in mounts:
        _put(mount)
    if _guards_git(confinement):
        _guard(STAGE + confinement.root)
    _leave_host()
    change = struct.pack("=QQQQ", ATTR_RDONLY, 0, 0, 0)
    call("mount_setattr", AT_FDCWD, b"/", 0, change, len(change))


def mount_scratch(confinement: Confinement) -> None:
    """Give this process empty temporary directories, which vanish with it and its descendants.

    It must be in the tree of a workspace. What that has below these directories stays visible.

    Raises:
        OSError: The kernel refused; this process must not continue.
    """
    # Directories are made by one user and traversed by another.
    os.umask(0o022)
    unshare(CLONE_NEWNS)
    own = (confinement.root, confinement.home, *confinement.readable)
    kept = []
    for path in sorted(each for each in own if each.startswith(_BELOW_TEMPORARY)):
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            kept.append(Mount(call("open_tree", AT_FDCWD, os.fsencode(path), COPY), path))
    around = [path for path in places.TEMPORARY if _is_around(path, confinement)]
    for path in (*around, confinement.temporary):
        os.makedirs(path, exist_ok=True)
        flags = MS_NOSUID | MS_NODEV
        call("mount", b"tmpfs", os.fsencode(path), b"tmpfs", flags, SCRATCH_OPTIONS)
    for path in ("/dev/shm", *places.TEMPORARY):
        if path not in around:
            source = os.fsencode(confinement.temporary)
            _put(Mount(call("open_tree", AT_FDCWD, source, COPY), path))
    for mount in kept:
        _put(mount)


def mount_proc_alone() -> None:
    """Replace the host's mounts with a tree that contains only the `/proc` of this process.

    It shows the pid namespace that this process was created in.

    Raises:
        OSError: It cannot be mounted; the root may be the host's or empty.
    """
    _leave_mounts()
    call("mount", b"tmpfs", STAGE.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, TREE_OPTIONS)
    os.mkdir(STAGE + "/proc")
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    call("mount", b"proc", f"{STAGE}/proc".encode(), b"proc", flags, None)
    _leave_host()


def taken_proc() -> int:
    """Return a detached copy of the `/proc` mount of this process.

    Raises:
        OSError: The kernel refused.
    """
    return call("open_tree", AT_FDCWD, b"/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)


def _leave_mounts() -> None:
    """Create a private mount namespace for this process."""
    # The tree is built by one user and traversed by another.
    os.umask(0o022)
    unshare(CLONE_NEWNS)
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)


def _leave_host() -> None:
    """Make the stage the root, and unmount the host's tree."""
    os.chdir(STAGE)
    call("pivot_root", b".", b".")
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")


def _taken(confinement: Confinement) -> tuple[list[tuple[str, str]], list[Mount]]:
    """Return the links to create, and copies of the host mounts to show."""
    links: list[tuple[str, str]] = []
    mounts: list[Mount] = []
    resolvers = places.RESOLVERS if confinement.network is Network.OPEN else ()
    for path in (*places.PROGRAMS, *places.SETTINGS, *resolvers, *confinement.readable):
        if path in places.PROGRAMS and os.path.islink(path):
            links.append((path, os.readlink(path)))
            continue
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            mounts.append(_take(path, path, SAFE | ATTR_RDONLY))
    mounts += [_take(path, path, ATTR_NOSUID | ATTR_NOEXEC) for path in places.DEVICES]
    # With a scratch, each process mounts its own instead.
    written = () if confinement.has_scratch else confinement.writable
    for path in places.TEMPORARY:
        if not _is_around(path, confinement):
            attributes = SAFE if written else SAFE | ATTR_RDONLY
            mounts.append(_take(confinement.temporary, path, attributes))
    for path in (confinement.temporary, confinement.home, confinement.root):
        mounts.append(_take(path, path, SAFE if path in written else SAFE | ATTR_RDONLY))
    return links, mounts


def _is_around(path: str, confinement: Confinement) -> bool:
    """Return whether a workspace is below a directory that it gets a private copy of."""
    own = (confinement.root, confinement.home, confinement.temporary, *confinement.readable)
    return any(each.startswith(f"{path}/") for each in own)


def _take(source: str, target: str, attributes: int) -> Mount:
    fd = call("open_tree", AT_FDCWD, os.fsencode(source), COPY)
    change = struct.pack("=QQQQ", attributes, 0, 0, 0)
    call("mount_setattr", fd, b"", AT_EMPTY_PATH | AT_RECURSIVE, change, len(change))
    return Mount(fd, STAGE + target)


def _put(mount: Mount) -> None:
    if not os.path.lexists(mount.target):
        if stat.S_ISDIR(os.fstat(mount.fd).st_mode):
            os.makedirs(mount.target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(mount.target), exist_ok=True)
            os.close(os.open(mount.target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    place = os.fsencode(mount.target)
    call("move_mount", mount.fd, b"", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH)
    os.close(mount.fd)


def _guard(root: str) -> None:
    """Make git's hooks and config read-only, and prevent its directory from being moved.

    The workspace may replace any name with a link at any time, and this process can traverse
    directories that the workspace cannot. So each name is opened once, relative to the one before,
    and mounted over itself.
    """
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _found(top, ".git", stat.S_ISDIR) as directory:
            if directory < 0:
                return
            # The directory itself too, writable: a mount point cannot be renamed.
            with _mounted_on_itself(directory, SAFE) as git:
                for name, is_kind in (("hooks", stat.S_ISDIR), ("config", stat.S_ISREG)):
                    with _found(git, name, is_kind) as found:
                        if found >= 0:
                            with _mounted_on_itself(found, SAFE | ATTR_RDONLY):
                                pass
    finally:
        os.close(top)


@contextmanager
def _found(directory: int, name: str, is_kind: Callable[[int], bool]) -> Iterator[int]:
    """Open an entry of a directory without following links; -1 if it is not of the kind."""
    try:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        yield -1
        return
    try:
        yield fd if is_kind(os.fstat(fd).st_mode) else -1
    finally:
        os.close(fd)


@contextmanager
def _mounted_on_itself(fd: int, attributes: int) -> Iterator[int]:
    """Mount an open file over itself; yields the mount."""
    mount = call("open_tree", fd, b"", COPY | AT_EMPTY_PATH)
    try:
        change = struct.pack("=QQQQ", attributes, 0, 0, 0)
        call("mount_setattr", mount, b"", AT_EMPTY_PATH | AT_RECURSIVE, change, len(change))
        both = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
        call("move_mount", mount, b"", fd, b"", both)
        yield mount
    finally:
        os.close(mount)


def _make_devices() -> None:
    os.mkdir(STAGE + "/dev")
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{STAGE}/dev/{name}")
    _mount_memory("/dev/shm")
    os.mkdir(STAGE + "/dev/pts")
    options = b"newinstance,ptmxmode=0666,mode=0620,max=%d" % TERMINALS_MAX
    place = f"{STAGE}/dev/pts".encode()
    call("mount", b"devpts", place, b"devpts", MS_NOSUID | MS_NOEXEC, options)
    os.symlink("pts/ptmx", f"{STAGE}/dev/ptmx")


def _mount_memory(path: str) -> None:
    os.makedirs(STAGE + path)
    flags = MS_NOSUID | MS_NODEV
    call("mount", b"tmpfs", f"{STAGE}{path}".encode(), b"tmpfs", flags, MEMORY_OPTIONS)
