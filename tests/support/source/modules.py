"""The sources of this repository, as the contract tests read them."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GENERATED = ("libs/parley/api", "libs/buf")


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
        and not any(map(path.is_relative_to, GENERATED))
        and (ROOT / path).exists()
    ]


def shipped_modules() -> list[Path]:
    """Return what is installed and does not belong to the past, as migrations do."""
    return [
        path
        for path in tracked_modules()
        if path.suffix == ".py"
        and path.parts[0] in {"libs", "services"}
        and "versions" not in path.parts
    ]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text())
