"""A mark on every process of a workspace that the process cannot remove.

Theory: a process that forks twice, leaves its session, clears its environment and changes its
directory cannot be attributed to a workspace. Resource limits are inherited through all of that.
`RLIMIT_LOCKS` is one that the kernel has not enforced since 2.4 and still inherits, so its value
can be a number of the workspace. Without a pid namespace the seccomp filter refuses to change it.
"""

import hashlib
import resource
from contextlib import suppress

from toolrunner.sandbox import RLIMIT_LOCKS

_LINE = b"Max file locks"
_MARK_MAX = (1 << 62) - 1


def mark_of_workspace(workspace: str) -> int:
    """Return the number of a workspace, never 0."""
    digest = hashlib.blake2b(workspace.encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "big") % _MARK_MAX


def mark_self(workspace: str) -> None:
    """Mark this process and its future descendants."""
    mark = mark_of_workspace(workspace)
    # If this program itself runs inside of a workspace, it keeps the mark of that one.
    with suppress(OSError, ValueError):
        resource.setrlimit(RLIMIT_LOCKS, (mark, mark))


def mark_on(pid: int, proc: str = "/proc") -> int:
    """Return the mark of a process, 0 if it has none or has exited."""
    with suppress(OSError, ValueError, IndexError), open(f"{proc}/{pid}/limits", "rb") as file:
        for line in file:
            if line.startswith(_LINE):
                # The hard limit, which unprivileged processes cannot raise.
                return int(line.removeprefix(_LINE).split()[1])
    return 0
