"""Instance files: a process holds one locked for its life, which lets others prove its death.

The lock is a `flock` on a descriptor that is closed on exec, so the kernel releases it exactly when
the process has ended. The file names the instance and the process id. It must be on a local file
system. A file is never removed while others may open it; a process that has put everything in order
clears it.
"""

import fcntl
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # The command line reads only names here, and starts without asyncio.
    from parley.clock import Clock

SUFFIX: Final = ".instance"
_BYTES_MAX: Final = 256
#: How long another process that starts may hold the file while it looks into it.
LOOKED_AT_S_MAX: Final = 2.0
LOOK_AGAIN_S: Final = 0.05

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class InstanceFile:
    """A locked instance file; the process that it named before has ended."""

    path: Path
    _descriptor: int

    @classmethod
    def lock(cls, path: Path) -> "InstanceFile | None":
        """Lock a file, which is created if it is missing; None if a living process holds it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor)

    @property
    def named(self) -> str:
        """The instance that the file names, empty if none."""
        return _parsed(os.pread(self._descriptor, _BYTES_MAX, 0))[1]

    def name(self, instance_id: str) -> None:
        """Name this process as the instance."""
        self.clear()
        os.pwrite(self._descriptor, f"{os.getpid()} {instance_id}\n".encode(), 0)

    def clear(self) -> None:
        """Name no instance any more."""
        os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


async def lock_instance_file(path: Path, instance_id: str, clock: "Clock") -> InstanceFile | None:
    """Lock the file of this process and name the instance; None if another process has it."""
    give_up_at = clock.monotonic() + LOOKED_AT_S_MAX
    while (locked := InstanceFile.lock(path)) is None:
        if clock.monotonic() >= give_up_at:
            logger.error("%s is locked by another process", path)
            return None
        await clock.sleep(LOOK_AGAIN_S)
    locked.name(instance_id)
    return locked


def dead_instances(directory: Path) -> Iterator[InstanceFile]:
    """Yield the files of a directory whose process ended without clearing them, each locked."""
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        found = InstanceFile.lock(path)
        if found is None:
            continue
        try:
            if found.named:
                yield found
        finally:
            found.close()


def instance_of_child(path: Path, pid: int) -> str | None:
    """Return the instance that a child named in its file; None if the file is not the child's.

    Only for the parent that has waited for the child: no other process can have had its id since.
    """
    try:
        named_pid, instance_id = _parsed(path.read_bytes()[:_BYTES_MAX])
    except FileNotFoundError:
        return None
    return instance_id if named_pid == pid and instance_id else None


def _parsed(content: bytes) -> tuple[int, str]:
    pid, _, instance_id = content.decode(errors="replace").strip().partition(" ")
    return (int(pid), instance_id) if pid.isdecimal() else (0, "")
