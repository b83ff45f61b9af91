"""ZIP archives of skills: a SKILL.md in the directory of each, read within bounds.

Skills of a user have no other files, so those of an archive are left out. Nothing is unpacked to
disk; an archive with names that lead out of it is refused all the same.
"""

import re
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from parley.cli.errors import CliError

SKILL_FILE: Final = "SKILL.md"
SKILL_BYTES_MAX: Final = 64 * 1024
SKILLS_MAX: Final = 100
ARCHIVE_BYTES_MAX: Final = 16 * 1024 * 1024
ENTRIES_MAX: Final = 1000
ENCRYPTED: Final = 1
METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
NAME: Final = re.compile(r"^name:[ \t]*['\"]?([^\s'\"]+)", re.MULTILINE)
#: Not in the parts of a path: what means something to other systems.
FOREIGN: Final = re.compile(r"[\\:\0]")


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A skill with the content of its SKILL.md."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class SkillArchive:
    """What is in an archive.

    Attributes:
        skipped: The names of files that belong to no skill of a user.
    """

    skills: tuple[SkillFile, ...]
    skipped: tuple[str, ...]


def read_archive(file: Path) -> SkillArchive:
    """Read the skills of an archive.

    Raises:
        CliError: It is no archive, is too large, or has something that is no skill.
    """
    try:
        if file.stat().st_size > ARCHIVE_BYTES_MAX:
            raise CliError(f"{file} has more than {ARCHIVE_BYTES_MAX} bytes")
        with zipfile.ZipFile(file) as archive:
            return _skills_of(archive)
    except (EOFError, ValueError, OverflowError):
        # Sizes, places and names that are not those of the archive.
        raise CliError(f"{file} cannot be read: it is damaged; pack it again") from None
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise CliError(f"{file} cannot be read: {error}") from None


def write_archive(file: Path, skills: Iterable[SkillFile]) -> None:
    """Write an archive of skills.

    Raises:
        CliError: The file exists, or cannot be written.
    """
    try:
        with zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED) as archive:
            for skill in skills:
                archive.writestr(f"{skill.name}/{SKILL_FILE}", skill.content)
    except FileExistsError:
        raise CliError(f"{file} exists; choose another name") from None
    except OSError as error:
        raise CliError(f"{file} cannot be written: {error}") from None


def skill_content(name: str, description: str, body: str) -> str:
    """Return the SKILL.md of a stored skill; stored again it gives the same skill."""
    return f"---\nname: {name}\ndescription: {_quoted(description)}\n---\n{body}"


def name_in(content: str) -> str | None:
    """Return the name in the first lines of a SKILL.md; None if there is none."""
    found = NAME.search(content)
    return found and found[1]


def _skills_of(archive: zipfile.ZipFile) -> SkillArchive:
    entries = [each for each in archive.infolist() if not each.is_dir()]
    if len(entries) > ENTRIES_MAX:
        raise CliError(f"the archive has more than {ENTRIES_MAX} files")
    for entry in archive.infolist():
        _check_path(entry.filename)
    chosen = [each for each in entries if PurePosixPath(each.filename).name == SKILL_FILE]
    if not 1 <= len(chosen) <= SKILLS_MAX:
        raise CliError(f"the archive needs 1 to {SKILLS_MAX} files {SKILL_FILE}")
    skills = tuple(_skill_of(archive, each) for each in chosen)
    if len({each.name for each in skills}) < len(skills):
        raise CliError("two files of the archive have the same name of a skill")
    return SkillArchive(skills, tuple(each.filename for each in entries if each not in chosen))


def _check_path(name: str) -> None:
    parts = name.removesuffix("/").split("/")
    if any(part in ("", ".", "..") or FOREIGN.search(part) for part in parts):
        raise CliError("the archive has a file whose name leads out of it")


def _skill_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> SkillFile:
    path = entry.filename
    if entry.flag_bits & ENCRYPTED or entry.compress_type not in METHODS:
        raise CliError(f"{path} is encrypted, or packed in a way that is not known here")
    with archive.open(entry) as opened:
        # The size that the archive states may be a lie.
        data = opened.read(SKILL_BYTES_MAX + 1)
    if len(data) > SKILL_BYTES_MAX:
        raise CliError(f"{path} has more than {SKILL_BYTES_MAX} bytes")
    try:
        content = data.decode()
    except UnicodeDecodeError:
        raise CliError(f"{path} is not UTF-8") from None
    name = name_in(content)
    if name is None:
        raise CliError(f"{path} has no line with name: in its first lines")
    directory = PurePosixPath(path).parent.name
    if directory and directory != name:
        raise CliError(f"{path} has the name {name}, not that of its directory")
    return SkillFile(name, content)


def _quoted(text: str) -> str:
    """Quote a value so that one pair of quotes is taken away, and colons stay part of it."""
    for mark in "\"'":
        if mark not in text:
            return f"{mark}{text}{mark}"
    return f'"{text}"' if text[0] == text[-1] and text[0] in "\"'" else text
