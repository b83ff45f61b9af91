"""Archives of skills."""

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


@pytest.mark.parametrize("description", ["a: b", 'says "x"', "it's", '"it\'s"', 'it\'s "x"'])
def test_a_description_is_read_as_it_was(description: str) -> None:
    content = skill_content("a", description, "b")
    line = content.splitlines()[2].removeprefix("description: ")
    is_quoted = line[0] == line[-1] and line[0] in "\"'"

    assert (line[1:-1] if is_quoted else line) == description
