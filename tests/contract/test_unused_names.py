"""Nothing is defined in the product that only tests use."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from support.source.modules import nodes_of, parsed, shipped_modules, tracked_modules

USERS = frozenset({"bench", "libs", "scripts", "services"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
REFERENCE = re.compile(r"[A-Za-z_][\w.:]{0,99}(?:\[[\w.\[\], |]+\])?").fullmatch
#: Called by programs that we do not see, and fakes that are shipped beside the port of a library.
CALLED_BY_OTHERS = (
    Path("libs/parley/bus/memory.py"),
    Path("libs/parley/client"),
    Path("libs/parley/clock/fake.py"),
    Path("libs/parley/telemetry/memory.py"),
)


def test_the_product_defines_nothing_that_it_does_not_use() -> None:
    used = defaultdict[str, list[tuple[Path, int]]](list)
    for path in tracked_modules():
        if path.suffix == ".py" and path.parts[0] in USERS:
            for name, line in used_names(path):
                used[name].append((path, line))
    found = [
        f"{path}: {name}"
        for path in shipped_modules()
        if not any(path.is_relative_to(each) for each in CALLED_BY_OTHERS)
        for name, lines in definitions(parsed(path))
        # A function that calls only itself is not used.
        if all(where == path and line in lines for where, line in used[name])
    ]
    assert found == []


def used_names(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the names that code reads and their lines, also in annotations and of attributes.

    Imports and the list of what a package exports are no use of a name.
    """
    exported = {id(name) for node in parsed(path).body for name in exports(node)}
    for node in nodes_of(path):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                yield name, node.lineno
            # An annotation of what is defined later, or "module:name" of what is loaded.
            case ast.Constant(value=str(text)) if id(node) not in exported and REFERENCE(text):
                yield from ((name, node.lineno) for name in re.findall(r"\w+", text))


def exports(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names)):
            return names
    return []


def definitions(module: ast.Module) -> Iterator[tuple[str, range]]:
    """Yield what a module defines, and the methods that Python or a base class does not call."""
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name != "__all__" and not is_table(node.value):
                    yield name, lines_of(node)
            # What is decorated is called by who decorates it, as commands are by click.
            case ast.FunctionDef(name=name, decorator_list=[]) | ast.AsyncFunctionDef(name=name):
                yield name, lines_of(node)
            case ast.ClassDef(name=name, bases=bases, body=body):
                yield name, lines_of(node)
                if all(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases):
                    yield from methods(body)


def methods(body: list[ast.stmt]) -> Iterator[tuple[str, range]]:
    for node in body:
        if isinstance(node, FUNCTIONS) and not node.name.startswith("__"):
            yield node.name, lines_of(node)


def is_table(value: ast.expr | None) -> bool:
    """Return whether this declares a table, which migrations are compared with."""
    match value:
        case ast.Call(func=ast.Name(id="Table")):
            return True
    return False


def lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
