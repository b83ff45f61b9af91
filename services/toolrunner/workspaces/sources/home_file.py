"""The instruction file in the home of a workspace's processes, which a fork gets from its parent.

The rest of a home is not copied: it has caches and settings of programs.
"""

import os
import stat
from typing import Final

from toolrunner.directories.workspaces import Workspace
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.trash import PRIVATE

HOME_FILE: Final = "AGENTS.md"
HOME_FILE_BYTES_MAX: Final = 64 * 1024

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_home_file(parent: Workspace, fork: Workspace, owner: int | None) -> None:
    """Copy the instruction file of the parent's home; links and other types are left out.

    Raises:
        OSError: It cannot be written.
    """
    content = _content_of(parent)
    if not content:
        return
    fork.home.mkdir(mode=PRIVATE, exist_ok=True)
    fd = os.open(fork.home / HOME_FILE, _WRITE, 0o644)
    try:
        if owner is not None:
            os.fchown(fd, owner, owner)
        os.write(fd, content)
    finally:
        os.close(fd)


def _content_of(workspace: Workspace) -> bytes:
    try:
        home = Root.open_directory(str(workspace.home))
    except OSError:
        return b""
    try:
        fd = home.open(HOME_FILE, _READ, through_links=False)
    except OSError:
        return b""
    finally:
        home.close()
    with open(fd, "rb", closefd=True) as file:
        return file.read(HOME_FILE_BYTES_MAX) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
