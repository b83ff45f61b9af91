"""What every module of the house must look like."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
#: Layers of a slice, each a module or a package as its size asks.
LAYERS_OF_A_SLICE = frozenset({"wiring", "rpc", "engine", "store", "clients", "domain"})
#: Single modules that import contracts may name, each group with the reason.
MODULES_IN_CONTRACTS = frozenset(
    {
        # Parts of the library that are no larger than a module, each with many users.
        "parley.cache",
        "parley.files",
        "parley.ids",
        "parley.instance_file",
        "parley.public_addresses",
        # The entry of the command, and what each of its commands uses.
        "parley.cli.__main__",
        "parley.cli.errors",
        "parley.cli.invocation",
        "parley.cli.main",
        "parley.cli.options",
        "parley.cli.progress",
        "parley.cli.text",
        "parley.cli.time_words",
        # The errors of the scripted model, below all of its packages.
        "parley.testing.llm_mock.errors",
        # Pure modules beside others of their package that are not.
        "chatd.tools.advisor.handoff",
        "chatd.tools.workspace.arguments",
        "chatd.tools.workspace.background",
        "chatd.tools.workspace.literals",
        "chatd.tools.workspace.paths",
        "chatd.tools.workspace.shell",
    }
)
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
    lengths = {each["name"]: len(each.get("layers", ())) for each in import_contracts()}
    assert {name: length for name, length in lengths.items() if length > LAYERS_MAX} == {}


def test_import_contracts_name_packages_but_for_a_few_modules() -> None:
    named = {name for contract in import_contracts() for name in names_of(contract)}
    assert len(named) > 200
    modules = {name for name in named if places_of(name) and not is_package(name)}
    assert modules == MODULES_IN_CONTRACTS


def test_import_contracts_name_only_what_exists() -> None:
    # A layer in parentheses is one that some containers do not have.
    missing = {
        name
        for contract in import_contracts()
        for name in names_of(contract, with_optional=False)
        if not places_of(name)
    }
    assert missing == set()


def import_contracts() -> list[dict[str, Any]]:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contracts: list[dict[str, Any]] = linter["contracts"]
    return contracts


def names_of(contract: dict[str, Any], *, with_optional: bool = True) -> Iterator[str]:
    """Yield what a contract is about, by dotted names that may have wildcards."""
    yield from contract.get("source_modules", ())
    containers = contract.get("containers", ())
    yield from containers
    for name in (name for layer in contract.get("layers", ()) for name in re.split("[|:]", layer)):
        if with_optional or "(" not in name:
            below = [f"{container}." for container in containers] or [""]
            yield from (f"{above}{name.strip(' ()')}" for above in below)


def places_of(name: str) -> list[Path]:
    """Return the packages and modules of a dotted name."""
    base = ROOT / ("libs" if name.partition(".")[0] == "parley" else "services")
    path = name.replace(".", "/")
    return [*base.glob(f"{path}/__init__.py"), *base.glob(f"{path}.py")]


def is_package(name: str) -> bool:
    """Tell whether a name is that of packages, or of layers of a slice."""
    return (
        all(place.name == "__init__.py" for place in places_of(name))
        or name.rpartition(".")[2] in LAYERS_OF_A_SLICE
    )


def test_the_domain_of_every_slice_is_in_a_contract_of_purity() -> None:
    pure = {
        name
        for each in import_contracts()
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
