"""The launcher of PostgreSQL: switches the user, sets the parent death signal, and calls exec.

It is run by its file name in a bare interpreter and imports only the standard library, because it
delays every start of a server. PostgreSQL refuses to run as root; when root starts it, this program
switches to another user first. If that user could not read the data or the programs (a home below
/root, say) it keeps one capability, to search and read directories, and no other. The kernel sends
the server SIGINT, its fast shutdown, when the supervisor dies.
"""

import argparse
import ctypes
import os
import signal
import struct
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1
PR_CAPBSET_READ = 23
PR_SET_SECUREBITS = 28
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
SECBIT_NO_SETUID_FIXUP = 1 << 2
CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2
REFUSED = 78

_libc = ctypes.CDLL(None, use_errno=True)


class LaunchRefused(Exception):
    """The program cannot be started as requested."""


def main(arguments: Sequence[str]) -> None:
    """Replace this process by the server; return only by an exception."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("--log", required=True)
    parser.add_argument("--reach", action="append", default=[])
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    if options.uid is not None:
        _become(options.uid, options.gid, options.reach)
    # After the switch: changing the user clears this setting.
    _prctl(PR_SET_PDEATHSIG, signal.SIGINT)
    if os.getppid() != options.parent:
        raise LaunchRefused("the process that asked for this server has gone")
    os.umask(0o077)
    log = os.open(options.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.execv(options.command[0], options.command)


def _become(uid: int, gid: int, reach: Sequence[str]) -> None:
    """Switch to this user permanently, keeping the one capability only if `reach` needs it."""
    os.setgroups([])
    capability = None if _can_reach(uid, gid, reach) else _search_capability(uid, reach)
    if capability is not None:
        # Otherwise access(2), which initdb uses to find its programs, ignores capabilities.
        _prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if capability is not None:
        _hold_only(capability)


def _can_reach(uid: int, gid: int, paths: Sequence[str]) -> bool:
    """Return whether this user may read every one of `paths`, by trying it as that user."""
    os.setegid(gid)
    os.seteuid(uid)
    try:
        return all(os.access(path, os.R_OK | os.X_OK, effective_ids=True) for path in paths)
    finally:
        os.seteuid(0)
        os.setegid(0)


def _search_capability(uid: int, paths: Sequence[str]) -> int:
    for capability in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE):
        if _libc.prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1:
            return capability
    raise LaunchRefused(
        f"user {uid} cannot reach {' and '.join(paths)}; choose a home that it can reach"
    )


def _hold_only(capability: int) -> None:
    """Keep exactly `capability` across the following exec."""
    bit = 1 << capability
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    low_then_high = struct.pack("=6I", bit, bit, bit, 0, 0, 0)
    if _libc.capset(header, low_then_high) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability)


def _prctl(option: int, first: int, second: int = 0) -> None:
    words = (ctypes.c_ulong(word) for word in (first, second, 0, 0))
    if _libc.prctl(option, *words) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (LaunchRefused, OSError) as error:
        sys.stderr.write(f"cannot start PostgreSQL: {error}\n")
        sys.exit(REFUSED)
