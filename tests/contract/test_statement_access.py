"""Every statement on the tables of a service names the rule by which its caller may run it.

The rule is a comment `# May run: RULE, RULE.` above the constant with the statement, or above the
function that runs a statement which it builds or is given. `docs/security.md` explains the rules.

Statements elsewhere are not read. The SQLite files of toolrunner have one reader, the process of
their node, and no column that names a person, so that a statement could not tell callers apart.
Statements of `parley.postgres` and `parley.bus` name no table with rows of a service, and the
outbox of `parley.audit_log` is filled and emptied by processes alone.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.source.modules import nodes_of, parsed, shipped_modules, source_of

SERVICES = (
    Path("services/chatd"),
    Path("services/gateway"),
    Path("services/mcpgateway"),
    Path("libs/parley/process/stored_keys.py"),
)
RUNS = frozenset({"execute", "executemany", "fetch", "fetchrow", "fetchval", "scalar", "cursor"})
DATABASE = re.compile(r"\b(?:_?pool|connection|source|_line|database)$")
RULE = re.compile(r"\s*# May run: (.+)\.")
RULES = frozenset(
    {"owner", "reader", "administrator", "user", "service", "credential", "process", "no-rows"}
)
CHECKED = re.compile(r"checked by (\w+)")
#: A column that says whose a row is, compared with an argument or set from one.
OWNER = re.compile(r"\b(?:owner_id|user_id|scope)\b")
ROWS = re.compile(r"\b(?:chat|identity|mcp)\.\w+")


@dataclass(frozen=True, slots=True)
class Run:
    """One place where a statement is run.

    Attributes:
        place: The module and the line.
        rules: By which its caller may run it.
        text: The statement, or the code that builds it; empty if it is given.
    """

    place: str
    rules: tuple[str, ...]
    text: str


def test_statements_are_found() -> None:
    assert len(runs()) > 250
    assert {rule for run in runs() for rule in run.rules} >= RULES


def test_every_statement_names_a_rule() -> None:
    assert [run.place for run in runs() if not run.rules] == []


def test_every_rule_is_known() -> None:
    names = {word for path in shipped_modules() for word in defined(path)}
    assert [
        (run.place, rule)
        for run in runs()
        for rule in run.rules
        if rule not in RULES and not ((by := CHECKED.fullmatch(rule)) and by[1] in names)
    ] == []


@pytest.mark.parametrize(
    ("rule", "needed"),
    [("owner", OWNER), ("reader", OWNER), ("reader", re.compile(r"\bchat_shares\b"))],
)
def test_a_statement_that_checks_its_caller_names_the_column(
    rule: str, needed: re.Pattern[str]
) -> None:
    assert [
        run.place
        for run in runs()
        if rule in run.rules and run.text and not needed.search(run.text)
    ] == []


def test_a_statement_without_rows_names_no_table() -> None:
    assert [run.place for run in runs() if "no-rows" in run.rules and ROWS.search(run.text)] == []


def test_no_rule_stands_where_no_statement_is() -> None:
    used = {place for path in database_modules() for place in rule_places(path)}
    assert [
        f"{path}:{number}"
        for path in database_modules()
        for number, line in enumerate(source(path), start=1)
        if RULE.fullmatch(line) and (path, number) not in used
    ] == []


@cache
def runs() -> tuple[Run, ...]:
    return tuple(run for path in database_modules() for run in runs_in(path))


@cache
def database_modules() -> tuple[Path, ...]:
    """Return the modules that run statements, or define some that others run."""
    return tuple(
        path
        for path in shipped_modules()
        if any(path.is_relative_to(each) for each in SERVICES)
        and (calls_in(path) or any(RULE.fullmatch(line) for line in source(path)))
    )


def runs_in(path: Path) -> Iterator[Run]:
    for call, function in calls_in(path):
        place, given = f"{path}:{call.lineno}", call.args[0]
        constants = [found for name in named(given) if (found := constant(path, name))]
        for where, node, value in constants:
            yield Run(place, rules_above(where, node), value)
        match given:
            case _ if constants:
                pass
            case ast.Constant(value=str(text)) if not ROWS.search(text):
                yield Run(place, ("no-rows",), text)
            case ast.Name() | ast.Attribute():
                yield Run(place, rules_above(path, function), "")
            case _:
                yield Run(place, rules_above(path, function), ast.unparse(function))
    for name, node, value in statements_in(path):
        yield Run(f"{path}: {name}", rules_above(path, node), value)


def statements_in(path: Path) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield the constants with a rule, also those that other modules or functions run."""
    for node in parsed(path).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if rule_line(path, node):
                yield name, node, str(getattr(imported(path), name))


@cache
def calls_in(path: Path) -> tuple[tuple[ast.Call, ast.AST], ...]:
    """Return the calls that run a statement, with the function around each."""
    return tuple(_calls_in(path))


def _calls_in(path: Path) -> Iterator[tuple[ast.Call, ast.AST]]:
    for function in nodes_of(path):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in ast.walk(function):
                match call:
                    case ast.Call(func=ast.Attribute(value=on, attr=attr), args=[_, *_]):
                        if attr in RUNS and DATABASE.search(ast.unparse(on)):
                            yield call, function


def named(argument: ast.expr) -> list[str]:
    """Return the constants that a statement is made of, whether imported by name or by module."""
    if isinstance(argument, ast.Call):
        return []
    words = [
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(argument)
        if isinstance(node, ast.Name | ast.Attribute)
    ]
    return [word for word in words if word.strip("_").isupper()]


def constant(path: Path, name: str) -> tuple[Path, ast.AST, str] | None:
    """Return where a constant is defined, and its value; the module of `path` comes first."""
    for where in (path, *database_modules()):
        for node in parsed(where).body:
            match node:
                case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                    value = getattr(imported(where), name)
                    if isinstance(value, str) and value in reachable(path, name):
                        return where, node, value
    return None


def reachable(path: Path, name: str) -> list[object]:
    """Return what a module means by a name, its own or that of a module that it imports."""
    module = imported(path)
    if hasattr(module, name):
        return [getattr(module, name)]
    return [getattr(other, name) for other in vars(module).values() if hasattr(other, name)]


def imported(path: Path) -> ModuleType:
    return importlib.import_module(".".join(path.with_suffix("").parts[1:]))


def rules_above(path: Path, node: ast.AST) -> tuple[str, ...]:
    number = rule_line(path, node)
    return () if number is None else rules_of(source(path)[number - 1])


def rules_of(line: str) -> tuple[str, ...]:
    found = RULE.fullmatch(line)
    return tuple(rule.strip() for rule in found[1].split(",")) if found else ()


def rule_line(path: Path, node: ast.AST) -> int | None:
    """Return the line with the rule, among the comments directly above a definition."""
    decorated: list[Any] = [node, *getattr(node, "decorator_list", [])]
    number: int = min(each.lineno for each in decorated) - 1
    while number > 0 and source(path)[number - 1].lstrip().startswith("#"):
        if RULE.fullmatch(source(path)[number - 1]):
            return number
        number -= 1
    return None


def rule_places(path: Path) -> Iterator[tuple[Path, int | None]]:
    yield from ((path, rule_line(path, node)) for _, node, _ in statements_in(path))
    yield from ((path, rule_line(path, function)) for _, function in calls_in(path))


def defined(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.AsyncFunctionDef(name=name):
                yield name


@cache
def source(path: Path) -> tuple[str, ...]:
    return tuple(source_of(path).splitlines())
