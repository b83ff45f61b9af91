"""A directory of this machine, packed so that a chat can work on a copy of it."""

import io
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parley.cli.errors import CliError, ConfigurationProblem

PACKED_BYTES_MAX: Final = 32 * 1024 * 1024
FILES_MAX: Final = 20_000
#: How long git may take to list a directory.
LISTING_S_MAX: Final = 60.0
#: Variables that git sets for processes it starts, such as hooks, and that point elsewhere.
ELSEWHERE: Final = frozenset(
    (
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"),
    )
)


@dataclass(frozen=True, slots=True)
class Packed:
    """The files of a directory.

    Attributes:
        archive: The files as a compressed archive.
        is_chosen: Whether git listed them; otherwise these are all files of the directory.
    """

    archive: bytes
    is_chosen: bool


def packed(directory: Path) -> Packed:
    """Return the files of a directory as a compressed archive.

    In a git repository these are the tracked files and the new ones that are not ignored, as they
    are now; anywhere else, all files.

    Raises:
        ConfigurationProblem: it is not a directory, or its files are too large.
    """
    if not directory.is_dir():
        raise ConfigurationProblem(f"{directory} is no directory: name one that exists")
    chosen = _chosen(directory)
    names = _walked(directory) if chosen is None else chosen
    if len(names) > FILES_MAX:
        raise _too_much(directory, f"over {FILES_MAX} files")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as archive:
        for name in names:
            _add(archive, directory, name)
            if buffer.tell() > PACKED_BYTES_MAX:
                break
    if buffer.tell() > PACKED_BYTES_MAX:
        raise _too_much(directory, f"over {PACKED_BYTES_MAX // 1024**2} MiB, packed")
    return Packed(buffer.getvalue(), chosen is not None)


def apply_patch(directory: Path, patch: str) -> None:
    """Apply a patch to the files of a directory: completely, or not at all.

    Uncommitted changes in the directory are kept, and nothing is staged.

    Raises:
        CliError: the patch does not apply any more.
    """
    try:
        # Below the top of a repository git reads names as relative to that top, and silently skips
        # those outside the directory.
        inside = _git(directory, "rev-parse", "--show-prefix")
        prefix = "" if inside.returncode else os.fsdecode(inside.stdout).removesuffix("\n")
        where = (f"--directory={prefix}",) if prefix else ()
        applied = _git(directory, "apply", "--whitespace=nowarn", *where, "-", given=patch.encode())
    except OSError as error:
        raise CliError(f"git cannot be run ({error.strerror}): install it for --apply") from error
    if applied.returncode:
        said = applied.stderr.decode(errors="replace").strip()
        raise CliError(f"the changes do not fit {directory} any more, nothing was applied: {said}")


def _chosen(directory: Path) -> list[str] | None:
    """Return the files listed by git, relative to the directory; None outside of a repository."""
    listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        listed = _git(directory, *listing, timeout_s=LISTING_S_MAX)
    except OSError:
        return None
    if listed.returncode:
        return None
    names = {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
    # A file that was deleted but is still tracked is listed, too.
    return sorted(name for name in names if os.path.lexists(directory / name))


def _git(
    directory: Path, *words: str, given: bytes = b"", timeout_s: float | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run git in a directory, independent of the repository this was called from."""
    given_here = dict(os.environ)  # noqa: TID251 (git finds itself and its settings by it)
    environment = {name: value for name, value in given_here.items() if name not in ELSEWHERE}
    return subprocess.run(
        ("git", *words),
        cwd=directory,
        env=environment,
        input=given,
        capture_output=True,
        check=False,
        timeout=timeout_s,
    )


def _walked(directory: Path) -> list[str]:
    names: list[str] = []
    for place, _, files in os.walk(directory):
        names += [os.path.relpath(os.path.join(place, file), directory) for file in files]
        if len(names) > FILES_MAX:
            break
    return sorted(names)


def _add(archive: tarfile.TarFile, directory: Path, name: str) -> None:
    """Pack one file; anything but a file or link, such as a socket or a submodule, is skipped."""
    place = directory / name
    if not (place.is_symlink() or place.is_file()):
        return
    try:
        archive.add(place, arcname=name, recursive=False, filter=_anonymous)
    except OSError as error:
        raise CliError(f"{place} cannot be read: {error.strerror}") from error


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the owner of a file: the workspace has another user."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _too_much(directory: Path, what: str) -> ConfigurationProblem:
    return ConfigurationProblem(f"{directory} holds {what}: name a smaller directory")
