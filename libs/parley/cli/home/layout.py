"""The layout of a home directory: where Parley keeps data, keys, sockets and logs of one stack."""

import hashlib
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from parley.cli.errors import ConfigurationProblem
from parley.files import write_atomically
from parley.instance_file import SUFFIX

#: A UNIX socket address holds 108 bytes; longer paths than this leave too little for names.
SOCKET_PATH_BYTES_MAX = 100
#: Socket addresses are URIs in lists, where commas, blanks, `%` and `#` have another meaning.
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+@=-]+")
LONGEST_SOCKET_NAME = "mcpgateway-99.sock"


@dataclass(frozen=True, slots=True)
class Home:
    """The paths of one home; does not read their contents."""

    root: Path
    #: The directory of the sockets when the path of `root` is too long or has such characters.
    temporary: Path

    @classmethod
    def at(cls, root: Path) -> "Home":
        """Return the home at `root`."""
        return cls(Path(os.path.abspath(root)), Path(tempfile.gettempdir()))

    @property
    def postgres(self) -> Path:
        """Return the directory of the embedded PostgreSQL."""
        return self.root / "postgres"

    @property
    def postgres_log(self) -> Path:
        """Return the log of the embedded PostgreSQL."""
        return self.postgres / "postgres.log"

    @property
    def keys(self) -> Path:
        """Return the directory of all secrets."""
        return self.root / "keys"

    @property
    def tls(self) -> Path:
        """Return the directory of the certificate authority and its certificates."""
        return self.keys / "tls"

    @property
    def trust_file(self) -> Path:
        """Return the file with the public keys that services trust."""
        return self.keys / "trust.json"

    @property
    def master_key_file(self) -> Path:
        """Return the keyring that seals secrets at rest."""
        return self.keys / "master.keyring"

    @property
    def former_master_key_file(self) -> Path:
        """Return the keyring with keys that were removed from the other one."""
        return self.keys / "master.keyring.old"

    @property
    def audit_key_file(self) -> Path:
        """Return the key that seals and signs the audit log."""
        return self.keys / "audit.key"

    @property
    def audit_heads_file(self) -> Path:
        """Return the file of signed heads of the audit log."""
        return self.keys / "audit_heads.jsonl"

    @property
    def rotation_file(self) -> Path:
        """Return the file with the rotation of keys that is not finished."""
        return self.keys / "rotation.json"

    @property
    def rotation_lock_file(self) -> Path:
        """Return the file that a command which changes keys holds locked."""
        return self.keys / "rotation.lock"

    @property
    def login_token_file(self) -> Path:
        """Return the file with the login token of this start."""
        return self.keys / "login_token"

    @property
    def logs(self) -> Path:
        """Return the directory of log files."""
        return self.root / "logs"

    @property
    def endpoints_file(self) -> Path:
        """Return the file with the addresses of the stack, for other commands."""
        return self.root / "endpoints.json"

    @property
    def api_key_file(self) -> Path:
        """Return the file with the owner's API key."""
        return self.root / "api_key"

    @property
    def lock_file(self) -> Path:
        """Return the file that the running supervisor holds locked."""
        return self.root / "up.lock"

    @property
    def processes_file(self) -> Path:
        """Return the file with the processes that were started."""
        return self.root / "processes.json"

    @property
    def supervisor_log(self) -> Path:
        """Return the log of a supervisor in the background."""
        return self.logs / "supervisor.log"

    @property
    def run(self) -> Path:
        """Return the directory of sockets: inside the home, unless it cannot be in an address."""
        inside = self.root / "run"
        is_short = len(os.fsencode(inside / LONGEST_SOCKET_NAME)) <= SOCKET_PATH_BYTES_MAX
        if is_short and PLAIN_PATH.fullmatch(str(inside)):
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return self.temporary / f"parley-{os.geteuid()}-{digest}"

    def signing_key_file(self, service: str) -> Path:
        """Return the private key that `service` signs with."""
        return self.keys / f"{service}.key"

    def database_url_file(self, service: str) -> Path:
        """Return the file with the database URL of `service`."""
        return self.keys / f"{service}.database"

    @property
    def role_passwords_file(self) -> Path:
        """Return the file with the passwords of all database roles that this home made."""
        return self.keys / "database_roles.json"

    def toolrunner(self, number: int) -> Path:
        """Return the data directory of one toolrunner."""
        return self.root / "toolrunner" / str(number)

    def log_file(self, name: str) -> Path:
        """Return the log of the process called `name`."""
        return self.logs / f"{name}.log"

    def socket(self, name: str) -> Path:
        """Return the socket of the process called `name`."""
        return self.run / f"{name}.sock"

    def instance_file(self, name: str) -> Path:
        """Return the file that the process called `name` holds locked."""
        return self.run / f"{name}{SUFFIX}"

    def gateway_instance_file(self, number: int) -> Path:
        """Return the file that one mcpgateway holds locked, in a directory of their own."""
        return self.run / "mcpgateway" / f"{number}{SUFFIX}"

    def check(self) -> None:
        """Refuse a home that exists and cannot be used.

        Raises:
            ConfigurationProblem: it is not a directory, belongs to another user, or is not
                readable.
        """
        _check_directory(self.root.stat, self.root)
        _check_directory(self.keys.stat, self.keys)
        # In the system's temporary directory another user could have created a link.
        _check_directory(self.run.lstat, self.run)

    def prepare(self) -> None:
        """Create the directories that are missing.

        Raises:
            ConfigurationProblem: the home cannot be created or used.
        """
        self.check()
        try:
            for path in (self.root, self.keys, self.run, self.logs, self.root / "toolrunner"):
                make_private_directory(path)
        except OSError as error:
            raise ConfigurationProblem(
                f"{error.filename or self.root} cannot be created ({error.strerror}): "
                "name another directory with --home DIR"
            ) from error

    def remove_sockets(self) -> None:
        """Remove the sockets, and their directory where it is not inside the home.

        An instance file that names a process is kept: the next start learns from it who died.
        """
        for path in (*self.run.glob("*.sock"), *filter(_is_empty, self.run.glob(f"*{SUFFIX}"))):
            path.unlink(missing_ok=True)
        if not self.run.is_relative_to(self.root):
            with suppress(OSError):
                self.run.rmdir()


def _is_empty(path: Path) -> bool:
    return path.stat().st_size == 0


def _check_directory(look: Callable[[], os.stat_result], path: Path) -> None:
    try:
        found = look()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationProblem(
            f"{path} cannot be read ({error.strerror}): fix its permissions or use --home DIR"
        ) from error
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigurationProblem(f"{path} is not a directory: remove it or use --home DIR")
    if found.st_uid != os.geteuid():
        raise ConfigurationProblem(
            f"{path} belongs to user {found.st_uid}, not to you ({os.geteuid()}): "
            "run parley as that user or use --home DIR"
        )
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigurationProblem(
            f"{path} is not readable and writable: "
            f"run `chmod u+rwx {shlex.quote(str(path))}` or use --home DIR"
        )


def write_private(path: Path, text: str) -> None:
    """Replace `path` with `text` atomically, readable by its owner only."""
    write_atomically(path, text.encode())


def make_private_directory(path: Path) -> None:
    """Make sure that `path` is a directory that only its owner can access."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)
