"""The sources of this repository, as the contract tests read them."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GENERATED = ("libs/parley/api", "libs/buf")


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return all files of the repository, whether committed yet or not."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (Path(name) for name in listing.stdout.splitlines())
    return tuple(path for path in paths if (ROOT / path).exists())


@cache
def tracked_modules() -> tuple[Path, ...]:
    """Return our Python and TypeScript sources, whether committed yet or not."""
    return tuple(
        path
        for path in tracked_files()
        if path.suffix in {".py", ".ts", ".tsx"} and not any(map(path.is_relative_to, GENERATED))
    )


@cache
def shipped_modules() -> tuple[Path, ...]:
    """Return what is installed and does not belong to the past, as migrations do."""
    return tuple(
        path
        for path in tracked_modules()
        if path.suffix == ".py"
        and path.parts[0] in {"libs", "services"}
        and "versions" not in path.parts
    )


@cache
def source_of(path: Path) -> str:
    """Return the text of a module, read once for all tests."""
    return (ROOT / path).read_text()


@cache
def parsed(path: Path) -> ast.Module:
    """Return the tree of a module, which no test may change."""
    return ast.parse(source_of(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of the tree of a module, as `ast.walk` gives them."""
    return tuple(ast.walk(parsed(path)))


@cache
def modules_below(*directories: str) -> tuple[Path, ...]:
    """Return our Python modules below some directories."""
    return tuple(
        path
        for path in tracked_modules()
        if path.suffix == ".py" and any(map(path.is_relative_to, directories))
    )
