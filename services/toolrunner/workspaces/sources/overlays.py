"""Copy-on-write layers over directories: overlayfs, where this process may mount it."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from toolrunner.filesystem.trash import PRIVATE

MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MNT_DETACH: Final = 2

_libc: Final = ctypes.CDLL(None, use_errno=True)


class Overlays(Protocol):
    """Mounts an overlay over a directory."""

    @property
    def is_available(self) -> bool:
        """Whether overlays can be mounted."""
        ...

    def lay(self, lower: Path, layer: Path, mount_point: Path) -> None:
        """Mount a directory at another path, with changes in the layer; idempotent.

        Raises:
            OSError: The kernel refuses.
        """
        ...

    def take_off(self, mount_point: Path) -> None:
        """Unmount it; the changes stay in the layer."""
        ...


class KernelOverlays:
    """Overlays of the kernel, mounted where the spawner and its children see them."""

    def __init__(self, probe_directory: Path) -> None:
        self.is_available = self._probe(probe_directory)

    def lay(self, lower: Path, layer: Path, mount_point: Path) -> None:
        """Mount a directory at another path, with changes in the layer; idempotent.

        Raises:
            OSError: The kernel refuses.
        """
        for directory in (layer, layer / "upper", layer / "work", mount_point):
            directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if os.path.ismount(mount_point):
            return
        _look_like(layer / "upper", lower.stat())
        parts = {"lowerdir": lower, "upperdir": layer / "upper", "workdir": layer / "work"}
        options = ",".join(f"{name}={_escaped(path)}" for name, path in parts.items())
        target = os.fsencode(mount_point)
        mounted = _libc.mount(
            b"overlay", target, b"overlay", MS_NOSUID | MS_NODEV, os.fsencode(options)
        )
        if mounted != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(mount_point))

    def take_off(self, mount_point: Path) -> None:
        """Unmount it; the changes stay in the layer."""
        if os.path.ismount(mount_point):
            _libc.umount2(os.fsencode(mount_point), MNT_DETACH)

    def _probe(self, directory: Path) -> bool:
        lower, mount_point = directory / "lower", directory / "merged"
        with suppress(OSError):
            lower.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            self.lay(lower, directory / "layer", mount_point)
            self.take_off(mount_point)
            return True
        return False


def _look_like(upper: Path, below: os.stat_result) -> None:
    """Give the upper directory the mode and owner of the lower one: it becomes the visible root."""
    os.chmod(upper, below.st_mode & 0o777)
    if below.st_uid != os.geteuid():
        os.chown(upper, below.st_uid, below.st_gid)


def _escaped(path: Path) -> str:
    text = str(path)
    for character in ("\\", ":", ","):
        text = text.replace(character, f"\\{character}")
    return text
