"""Deleted files that still use disk space, because processes hold them open.

Theory: a file is held by a descriptor, by a mapping, as the running executable, or as the working
directory of a process. Each thread may have its own descriptors, and a process whose first thread
ended shows them only in its other threads. A descriptor that was sent and not received is in no
process; the kernel only reports that a socket has some.
"""

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

BLOCK_BYTES: Final = 512
_DELETED: Final = b" (deleted)"
_IN_FLIGHT: Final = b"scm_fds:"

Identity = tuple[int, int]


@dataclass(slots=True)
class DeletedFiles:
    """Deleted files that processes hold.

    Attributes:
        devices: File systems that count.
        sizes: Bytes on disk, by device and inode.
        unread: Processes whose open files cannot be read.
        in_flight: Inodes of sockets with descriptors that are sent and not received.
    """

    devices: Collection[int]
    sizes: dict[Identity, int] = field(default_factory=dict)
    unread: int = 0
    in_flight: set[int] = field(default_factory=set)

    @property
    def disk_bytes(self) -> int:
        """The total disk space."""
        return sum(self.sizes.values())

    def note(self, seen: os.stat_result) -> None:
        """Count a file if it is deleted and on a device that counts."""
        is_kept = stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode)
        if is_kept and seen.st_nlink == 0 and seen.st_dev in self.devices:
            self.sizes[seen.st_dev, seen.st_ino] = seen.st_blocks * BLOCK_BYTES


def held_by(pids: Iterable[int], devices: Collection[int], proc: str = "/proc") -> DeletedFiles:
    """Return the deleted files that processes hold, on some file systems."""
    held = DeletedFiles(devices)
    for pid in pids:
        try:
            _look_at_process(held, f"{proc}/{pid}")
        except PermissionError:
            held.unread += 1
        except OSError:
            # It exited meanwhile, and holds nothing.
            continue
    return held


def _look_at_process(held: DeletedFiles, process: str) -> None:
    threads = [f"{process}/task/{name}" for name in os.listdir(f"{process}/task")]
    alive = []
    for thread in threads:
        try:
            _look_at_thread(held, thread)
        except PermissionError:
            # The kernel lets only root look at a thread that is exiting, which holds nothing.
            if not _is_exiting(thread):
                raise
        else:
            alive.append(thread)
    _look_at_mappings(held, alive)


def _look_at_thread(held: DeletedFiles, thread: str) -> None:
    with suppress(FileNotFoundError, ProcessLookupError):
        for name in ("exe", "cwd"):
            _note(held, f"{thread}/{name}")
        for name in os.listdir(f"{thread}/fd"):
            _look_at_descriptor(held, thread, name)


def _is_exiting(thread: str) -> bool:
    """Return whether a thread is exiting: it has no memory any more, and closes its descriptors."""
    try:
        with open(f"{thread}/status", "rb", buffering=0) as file:
            lines = file.readall().splitlines()
    except OSError:
        return True
    return not any(line.startswith(b"VmSize:") for line in lines)


def _note(held: DeletedFiles, path: str) -> os.stat_result | None:
    with suppress(FileNotFoundError, ProcessLookupError):
        seen = os.stat(path)
        held.note(seen)
        return seen
    return None


def _look_at_descriptor(held: DeletedFiles, thread: str, name: str) -> None:
    seen = _note(held, f"{thread}/fd/{name}")
    if seen is not None and stat.S_ISSOCK(seen.st_mode):
        with (
            suppress(FileNotFoundError, ProcessLookupError),
            open(f"{thread}/fdinfo/{name}", "rb", buffering=0) as file,
        ):
            for line in file.readall().splitlines():
                if line.startswith(_IN_FLIGHT) and int(line.removeprefix(_IN_FLIGHT)):
                    held.in_flight.add(seen.st_ino)


def _look_at_mappings(held: DeletedFiles, threads: list[str]) -> None:
    """Count mapped files; where map_files is not readable, only the mapped part."""
    for thread in threads:
        lines = _mappings(thread)
        if not lines:
            # This thread ended; the others still have the memory.
            continue
        for line in lines:
            if line.endswith(_DELETED):
                _look_at_mapping(held, thread, line)
        return


def _mappings(thread: str) -> list[bytes]:
    try:
        with open(f"{thread}/maps", "rb", buffering=0) as file:
            return file.readall().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []
    except PermissionError:
        if not _is_exiting(thread):
            raise
        return []


def _look_at_mapping(held: DeletedFiles, thread: str, line: bytes) -> None:
    span, _, offset, device, inode = line.split(maxsplit=5)[:5]
    process = thread.rpartition("/task/")[0]
    with suppress(OSError):
        held.note(os.stat(f"{process}/map_files/{span.decode()}"))
        return
    begin, end = (int(each, 16) for each in span.split(b"-"))
    identity = (os.makedev(*(int(each, 16) for each in device.split(b":"))), int(inode))
    if identity[0] in held.devices:
        mapped_bytes = int(offset, 16) + end - begin
        held.sizes[identity] = max(held.sizes.get(identity, 0), mapped_bytes)
