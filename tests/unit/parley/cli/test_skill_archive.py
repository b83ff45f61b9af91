"""Archives of skills."""

import struct
import zipfile
from pathlib import Path

import pytest

from parley.cli.accounts.skill_archive import (
    ENTRIES_MAX,
    SKILL_BYTES_MAX,
    SkillFile,
    read_archive,
    skill_content,
    write_archive,
)
from parley.cli.errors import CliError

REVIEW = SkillFile("review", skill_content("review", 'Reviews: "well"', "Grüße.\n"))


def archive(file: Path, *entries: tuple[str, str | bytes]) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries:
            made.writestr(name, content)
    return file


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "skills.zip"
    write_archive(file, [REVIEW])

    assert read_archive(file).skills == (REVIEW,)
    with pytest.raises(CliError, match="exists"):
        write_archive(file, [REVIEW])


def test_other_files_are_left_out(tmp_path: Path) -> None:
    file = archive(
        tmp_path / "a.zip",
        ("my/review/", ""),
        ("my/review/SKILL.md", REVIEW.content),
        ("my/review/run.sh", "rm"),
    )

    found = read_archive(file)

    assert (found.skills, found.skipped) == ((REVIEW,), ("my/review/run.sh",))


def test_what_an_archive_unpacks_to_is_bounded(tmp_path: Path) -> None:
    bomb = archive(tmp_path / "bomb.zip", ("a/SKILL.md", b"\0" * 50_000_000))
    assert bomb.stat().st_size < 100_000

    with pytest.raises(CliError, match=f"has more than {SKILL_BYTES_MAX} bytes"):
        read_archive(bomb)


@pytest.mark.parametrize(
    "name", ["../SKILL.md", "/etc/SKILL.md", "a/../../SKILL.md", "a//SKILL.md", "C:/SKILL.md"]
)
def test_names_that_lead_out_of_it_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CliError, match="leads out of it"):
        read_archive(archive(tmp_path / "a.zip", (name, REVIEW.content)))


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([("a/SKILL.md", "no head")], "no line with name:"),
        ([("other/SKILL.md", REVIEW.content)], "not that of its directory"),
        ([("SKILL.md", b"\xff\xfe")], "is not UTF-8"),
        ([("README.md", "hello")], "needs 1 to 100 files"),
        ([(f"{number}/x", "") for number in range(ENTRIES_MAX + 1)], "more than 1000 files"),
        ([("SKILL.md", REVIEW.content), ("review/SKILL.md", REVIEW.content)], "the same name"),
    ],
)
def test_what_is_no_archive_of_skills_is_refused(
    tmp_path: Path, entries: list[tuple[str, str | bytes]], words: str
) -> None:
    with pytest.raises(CliError, match=words):
        read_archive(archive(tmp_path / "a.zip", *entries))


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    file.write_bytes(b"no archive")
    with pytest.raises(CliError, match="cannot be read"):
        read_archive(file)


def damaged(file: Path, *changes: tuple[int, int, bytes]) -> Path:
    """Write an archive of two files, and bytes at places of their records in its directory."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as made:
        made.writestr("review/SKILL.md", REVIEW.content)
        made.writestr("review/run.sh", "rm")
    data = bytearray(file.read_bytes())
    first = data.index(b"PK\1\2")
    records = (first, data.index(b"PK\1\2", first + 1))
    for number, place, changed in changes:
        start = records[number] + place
        data[start : start + len(changed)] = changed
    file.write_bytes(data)
    return file


@pytest.mark.parametrize(
    "changes",
    [
        # The file ends before the size that is stated; the next one is stated to be further on.
        [(0, 20, struct.pack("<II", 9999, 9999)), (1, 42, struct.pack("<I", 999_999))],
        # A name that is stated to be UTF-8, and is not.
        [(0, 8, struct.pack("<H", 0x800)), (0, 46, b"\xff")],
    ],
)
def test_a_damaged_archive_is_refused(
    tmp_path: Path, changes: list[tuple[int, int, bytes]]
) -> None:
    with pytest.raises(CliError, match="cannot be read: it is damaged; pack it again"):
        read_archive(damaged(tmp_path / "a.zip", *changes))


@pytest.mark.parametrize("description", ["a: b", 'says "x"', "it's", '"it\'s"', 'it\'s "x"'])
def test_a_description_is_read_as_it_was(description: str) -> None:
    content = skill_content("a", description, "b")
    line = content.splitlines()[2].removeprefix("description: ")
    is_quoted = line[0] == line[-1] and line[0] in "\"'"

    assert (line[1:-1] if is_quoted else line) == description
