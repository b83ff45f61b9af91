"""The socket file: private to its owner, and replaced only if no process listens on it."""

import os
import socket
import stat
from pathlib import Path

from parley.rpc.address import Address
from parley.rpc.errors import AddressUnusable


def claim_path(address: Address) -> Path:
    """Create the socket's directory and remove a socket on which no process listens.

    Raises:
        AddressUnusable: Others can access the directory, or the path is in use.
    """
    path = Path(address.place)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.parent.stat().st_mode
        if mode & 0o077:
            problem = f"{path.parent} is open to others; chmod 700 it or choose another directory"
            raise AddressUnusable(str(address), problem)
        _remove_stale(address, path)
    except OSError as error:
        raise AddressUnusable(str(address), f"{error.strerror}; choose another path") from error
    return path


def close_to_others(path: Path) -> None:
    """Let only the owner connect; until now the mode of the directory kept others out."""
    path.chmod(0o600)


def release_path(address: Address) -> None:
    """Remove the socket file of a server that has stopped."""
    Path(address.place).unlink(missing_ok=True)


def _remove_stale(address: Address, path: Path) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise AddressUnusable(str(address), "the file is not a socket; choose another path")
    # grpc would unlink the socket of a running server and silently replace it.
    if _is_served(path):
        raise AddressUnusable(str(address), "another process serves there; stop it first")
    path.unlink(missing_ok=True)


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            # Its backlog is full, so a process listens.
            return True
    return True
