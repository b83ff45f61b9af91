"""What every module of the house must look like."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from support.source.modules import (
    ROOT,
    nodes_of,
    shipped_modules,
    source_of,
    tracked_files,
    tracked_modules,
)

LINES_MAX = 500
FOLDER_MODULES_MAX = 25
PAGE = Path("services/gateway/web/page/src")
LAYERS_MAX = 6
# Of a function in what we ship, without its docstring. Functions of tests are stories or stages.
FUNCTION_LINES_MAX = 60
JUNK_DRAWERS = frozenset(
    {"utils", "util", "common", "shared", "helpers", "helper", "core", "misc", "base", "manager"}
)


def test_no_module_grows_beyond_its_bound() -> None:
    lengths = {path: source_of(path).count("\n") for path in tracked_modules()}
    assert {path: length for path, length in lengths.items() if length > LINES_MAX} == {}


def test_no_folder_holds_too_many_modules() -> None:
    sizes = Counter(
        path.parent
        for path in tracked_modules()
        if path.suffix == ".py" and "versions" not in path.parts
    )
    assert {path: size for path, size in sizes.items() if size > FOLDER_MODULES_MAX} == {}


def test_no_folder_of_the_page_holds_too_many_files() -> None:
    sizes = Counter(path.parent for path in tracked_files() if path.is_relative_to(PAGE))
    assert sum(sizes.values()) > 300
    assert {path: size for path, size in sizes.items() if size > FOLDER_MODULES_MAX} == {}


def test_no_import_contract_has_too_many_layers() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    lengths = {each["name"]: len(each.get("layers", ())) for each in linter["contracts"]}
    assert {name: length for name, length in lengths.items() if length > LAYERS_MAX} == {}


def test_the_domain_of_every_slice_is_in_a_contract_of_purity() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    pure = {
        name
        for each in linter["contracts"]
        if each["type"] == "forbidden" and "asyncio" in each["forbidden_modules"]
        for name in each["source_modules"]
    }
    parts = [path.with_suffix("").parts[1:] for path in shipped_modules()]
    named = {".".join(each[: each.index("domain") + 1]) for each in parts if "domain" in each}
    assert len(named) > 25
    assert named - pure == set()


def test_no_module_is_a_junk_drawer() -> None:
    assert [path for path in tracked_modules() if JUNK_DRAWERS & {*path.parts, path.stem}] == []


def test_no_function_grows_beyond_its_bound() -> None:
    lengths = {
        f"{path}:{function.name}": code_lines(function)
        for path in shipped_modules()
        for function in nodes_of(path)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES_MAX} == {}


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[1 if ast.get_docstring(function) is not None else 0 :]
    return (function.end_lineno or 0) - first[0].lineno + 1 if first else 0


@pytest.mark.parametrize("room", sorted((ROOT / "libs" / "parley").iterdir()), ids=lambda p: p.name)
def test_every_room_says_in_one_sentence_what_it_is(room: Path) -> None:
    if not room.is_dir() or room.name == "__pycache__":
        return
    first_line = (room / "__init__.py").read_text().splitlines()[0]
    assert first_line.startswith('"""')
    assert first_line.removesuffix('"""').endswith(".")
