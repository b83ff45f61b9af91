"""What every module of the house must look like."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENERATED = ("libs/parley/api", "libs/buf")
LINES_MAX = 500
FOLDER_MODULES_MAX = 25
LAYERS_MAX = 6
# Of a function in what we ship, without its docstring. Functions of tests are stories or stages.
FUNCTION_LINES_MAX = 60
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
        and not any(map(path.is_relative_to, GENERATED))
        and (ROOT / path).exists()
    ]


def test_no_module_grows_beyond_its_bound() -> None:
    lengths = {path: (ROOT / path).read_text().count("\n") for path in tracked_modules()}
    assert {path: length for path, length in lengths.items() if length > LINES_MAX} == {}


def test_no_folder_holds_too_many_modules() -> None:
    sizes = Counter(
        path.parent
        for path in tracked_modules()
        if path.suffix == ".py" and "versions" not in path.parts
    )
    assert {path: size for path, size in sizes.items() if size > FOLDER_MODULES_MAX} == {}


def test_no_import_contract_has_too_many_layers() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    lengths = {each["name"]: len(each.get("layers", ())) for each in linter["contracts"]}
    assert {name: length for name, length in lengths.items() if length > LAYERS_MAX} == {}


def test_no_module_is_a_junk_drawer() -> None:
    assert [path for path in tracked_modules() if JUNK_DRAWERS & {*path.parts, path.stem}] == []


def test_no_function_grows_beyond_its_bound() -> None:
    lengths = {
        f"{path}:{function.name}": code_lines(function)
        for path in shipped_modules()
        for function in ast.walk(parsed(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES_MAX} == {}


def test_nothing_is_defined_that_nobody_names() -> None:
    # What is only handed on by a room's face is not used by that.
    mentioned = Counter(
        word
        for path in tracked_modules()
        if path.suffix == ".py" and path.name != "__init__.py"
        for word in re.findall(r"\w+", (ROOT / path).read_text())
    )
    defined = [(path, name) for path in shipped_modules() for name in defined_names(parsed(path))]
    assert [(str(path), name) for path, name in defined if mentioned[name] == 1] == []


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


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[1 if ast.get_docstring(function) is not None else 0 :]
    return (function.end_lineno or 0) - first[0].lineno + 1 if first else 0


def defined_names(module: ast.Module) -> Iterator[str]:
    """Yield what a module defines, and the methods that Python or a base class does not call."""
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                yield name
            # What is decorated is called by who decorates it, as commands are by click.
            case ast.FunctionDef(name=name, decorator_list=[]) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name, bases=bases, body=body):
                yield name
                methods = (ast.FunctionDef, ast.AsyncFunctionDef)
                names = (each.name for each in body if isinstance(each, methods) and not bases)
                yield from (each for each in names if not each.startswith("__"))


@pytest.mark.parametrize("room", sorted((ROOT / "libs" / "parley").iterdir()), ids=lambda p: p.name)
def test_every_room_says_in_one_sentence_what_it_is(room: Path) -> None:
    if not room.is_dir() or room.name == "__pycache__":
        return
    first_line = (room / "__init__.py").read_text().splitlines()[0]
    assert first_line.startswith('"""')
    assert first_line.removesuffix('"""').endswith(".")
