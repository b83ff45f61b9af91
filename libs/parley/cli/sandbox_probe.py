"""What this kernel offers for confining commands, and the sandbox level that follows from it."""

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

LANDLOCK_CREATE_RULESET = 444
LANDLOCK_VERSION_FLAG = 1
PROBE_S_MAX = 5.0
UNSHARE_USER = (
    "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000 | 0x20000000) != 0)"
)


@dataclass(frozen=True, slots=True)
class SandboxOffer:
    """What was found."""

    has_bubblewrap: bool
    is_bubblewrap_working: bool
    has_user_namespaces: bool
    #: 0 when the kernel has no Landlock.
    landlock_abi: int
    is_root: bool

    @property
    def level(self) -> str:
        """Return the highest of the levels ns, landlock, uid and none that can be reached."""
        if self.is_bubblewrap_working:
            return "ns"
        if self.landlock_abi > 0:
            return "landlock"
        return "uid" if self.is_root else "none"

    @property
    def missing(self) -> tuple[str, ...]:
        """Return what keeps a higher level out of reach."""
        found = []
        if not self.has_bubblewrap:
            found.append("bubblewrap is not installed")
        elif not self.is_bubblewrap_working:
            found.append("bubblewrap may not make namespaces here")
        if not self.has_user_namespaces:
            found.append("user namespaces are not allowed (seccomp or sysctl)")
        if self.landlock_abi == 0:
            found.append("this kernel has no Landlock (5.13 or newer has)")
        return tuple(found)


def probe_sandbox(search_path: str | None) -> SandboxOffer:
    """Try everything once."""
    bubblewrap = shutil.which("bwrap", path=search_path)
    arguments = ("--ro-bind", "/", "/", "--unshare-all", "--cap-drop", "ALL", "/bin/true")
    return SandboxOffer(
        has_bubblewrap=bubblewrap is not None,
        is_bubblewrap_working=bubblewrap is not None and _succeeds((bubblewrap, *arguments)),
        has_user_namespaces=_succeeds((sys.executable, "-I", "-S", "-c", UNSHARE_USER)),
        landlock_abi=_landlock_abi(),
        is_root=os.geteuid() == 0,
    )


def _landlock_abi() -> int:
    if sys.platform != "linux":
        return 0
    version = ctypes.CDLL(None, use_errno=True).syscall(
        LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_VERSION_FLAG
    )
    return max(0, int(version))


def _succeeds(command: tuple[str, ...]) -> bool:
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_S_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0
