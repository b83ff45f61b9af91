"""The directory of an embedded server: its layout, its owner, and its lock."""

import fcntl
import hashlib
import os
import pwd
import secrets
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from parley.files import write_atomically
from parley.postgres.errors import DirectoryInUse, DirectoryUnusable

SOCKET_PATH_BYTES_MAX = 107
SOCKET_NAME_LONGEST = ".s.PGSQL.65535"
SOCKET_FILES = ".s.PGSQL.*"


@dataclass(frozen=True, slots=True)
class Account:
    """The user that the server runs as."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class ServerDirectory:
    """The paths of one embedded server."""

    root: Path
    socket_directory: Path

    @classmethod
    def at(cls, root: Path, *, runtime_root: Path) -> "ServerDirectory":
        """Return the layout below `root`; a socket path too long is moved to `runtime_root`."""
        root = root.absolute()
        near = root / "socket"
        name_bytes = len(os.fsencode(near / SOCKET_NAME_LONGEST))
        # Client and server parse a comma in a socket's directory as a list of directories.
        if name_bytes <= SOCKET_PATH_BYTES_MAX and not set(',"') & set(str(near)):
            return cls(root, near)
        digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
        return cls(root, runtime_root / f"parley-{os.geteuid()}-{digest}" / "socket")

    @property
    def data(self) -> Path:
        """PostgreSQL's data directory."""
        return self.root / "data"

    @property
    def unfinished(self) -> Path:
        """The directory that initdb writes before it is renamed to `data`."""
        return self.root / "data.unfinished"

    @property
    def log_file(self) -> Path:
        """The server's log."""
        return self.root / "postgres.log"

    @property
    def password_file(self) -> Path:
        """The password of the superuser."""
        return self.root / "superuser-password"

    def major_version(self) -> int | None:
        """Return the version that wrote the data, or None when there is no data yet.

        Raises:
            DirectoryUnusable: It exists and is not a data directory.
        """
        try:
            return int((self.data / "PG_VERSION").read_text("ascii"))
        except FileNotFoundError:
            if not self.data.exists() or not any(self.data.iterdir()):
                return None
        except ValueError:
            pass
        raise DirectoryUnusable(
            self.data,
            "it is not empty and not a complete data directory (PG_VERSION is missing or damaged)",
            "restore it from a backup, or move it away to begin with an empty database",
        )

    def account(self) -> Account | None:
        """Return the user to switch to, or None when this process is not root.

        Raises:
            DirectoryUnusable: The data belongs to another user.
        """
        owner = self.data.stat() if self.data.exists() else None
        if os.geteuid() != 0:
            if owner is not None and owner.st_uid != os.geteuid():
                reason = f"it belongs to user {owner.st_uid}"
                raise DirectoryUnusable(
                    self.data, reason, "run as that user or choose another home"
                )
            return None
        if owner is not None and owner.st_uid != 0:
            return Account(owner.st_uid, owner.st_gid)
        known = {entry.pw_name: entry for entry in pwd.getpwall()}
        for name in ("postgres", "nobody"):
            if name in known:
                return Account(known[name].pw_uid, known[name].pw_gid)
        reason = "PostgreSQL does not run as root, and there is no user postgres or nobody"
        raise DirectoryUnusable(self.root, reason, "create a user postgres or run as another user")

    def prepare(self, account: Account | None) -> None:
        """Make the directories, private to the server's user.

        Raises:
            DirectoryUnusable: The runtime directory belongs to another user.
        """
        _private(self.root, account)
        if self.socket_directory.parent != self.root:
            _private(self.socket_directory.parent, None)
            _must_be_ours(self.socket_directory.parent)
        _private(self.socket_directory, account)

    def remove_runtime_directory(self) -> None:
        """Remove the socket's directory, and files of a killed server in it, if it is elsewhere.

        Call this only when no server runs.
        """
        runtime = self.socket_directory.parent
        if runtime == self.root or not runtime.is_dir():
            return
        _must_be_ours(runtime)
        for path in self.socket_directory.glob(SOCKET_FILES):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.socket_directory.rmdir()
            runtime.rmdir()

    def lock(self) -> int:
        """Return a descriptor that holds the lock until it is closed or this process ends.

        Raises:
            DirectoryInUse: Another process holds the lock.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.root / "lock", flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise DirectoryInUse(self.root) from error
        return descriptor

    def password(self) -> str:
        """Return the superuser's password.

        Raises:
            DirectoryUnusable: The file does not exist.
        """
        try:
            return self.password_file.read_text("ascii").strip()
        except OSError as error:
            raise DirectoryUnusable(
                self.password_file, str(error.strerror), "restore this file from a backup"
            ) from error

    def make_password(self) -> None:
        """Generate a password unless an earlier attempt left one."""
        if not self.password_file.exists():
            write_atomically(self.password_file, secrets.token_urlsafe(32).encode())

    def remove_unfinished(self) -> bool:
        """Remove the files of a killed initialisation, which never held user data."""
        if not self.unfinished.exists():
            return False
        shutil.rmtree(self.unfinished)
        return True

    def adopt_unfinished(self) -> None:
        """Rename the finished data directory to its final name, atomically and durably."""
        os.rename(self.unfinished, self.data)
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _private(directory: Path, account: Account | None) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if account is not None:
        os.chown(directory, account.uid, account.gid)
    if directory.stat().st_uid == os.geteuid() or account is not None:
        directory.chmod(0o700)


def _must_be_ours(directory: Path) -> None:
    """Refuse a runtime directory that another user created first under its predictable name."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        reason = "it exists and is not a private directory of this user"
        raise DirectoryUnusable(directory, reason, "remove it or choose a shorter home")
