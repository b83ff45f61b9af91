"""What every module of the house must look like."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LINES_MAX = 500
JUNK_DRAWERS = frozenset(
    {"utils", "util", "common", "shared", "helpers", "helper", "core", "misc", "base", "manager"}
)


def tracked_modules() -> list[Path]:
    """Return our Python and TypeScript sources, whether committed yet or not."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (Path(name) for name in listing.stdout.splitlines())
    return [
        path
        for path in paths
        if path.suffix in {".py", ".ts", ".tsx"}
        and not path.is_relative_to("libs/parley/api")
        and (ROOT / path).exists()
    ]


def test_no_module_grows_beyond_its_bound() -> None:
    lengths = {path: (ROOT / path).read_text().count("\n") for path in tracked_modules()}
    assert {path: length for path, length in lengths.items() if length > LINES_MAX} == {}


def test_no_module_is_a_junk_drawer() -> None:
    assert [path for path in tracked_modules() if JUNK_DRAWERS & {*path.parts, path.stem}] == []


@pytest.mark.parametrize("room", sorted((ROOT / "libs" / "parley").iterdir()), ids=lambda p: p.name)
def test_every_room_says_in_one_sentence_what_it_is(room: Path) -> None:
    if not room.is_dir() or room.name == "__pycache__":
        return
    first_line = (room / "__init__.py").read_text().splitlines()[0]
    assert first_line.startswith('"""')
    assert first_line.removesuffix('"""').endswith(".")
