"""Writes files atomically that only their owner can read."""

from pathlib import Path

from parley.files import write_atomically

DIRECTORY_MODE = 0o700


def write_private(path: Path, text: str) -> None:
    """Replace `path` with `text` atomically, readable by its owner only."""
    write_atomically(path, text.encode())


def make_private_directory(path: Path) -> None:
    """Make sure that `path` is a directory that only its owner can access."""
    path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o077:
        path.chmod(DIRECTORY_MODE)
