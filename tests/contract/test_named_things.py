"""Routes, commands, settings and files that documents name must be there by that name."""

import re
from functools import cache
from pathlib import Path

import pytest

from gateway.identity.engine.scopes import known_scopes
from parley.cli.main import COMMANDS
from support.gateway.routes import every_route

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Documents say once what their paths are below.
BELOW = ("", "/api/v1", "/api/v1/chats/{}", "/api/v1/workspaces/{}")
ROUTE = re.compile(r"(?:`|^ {4})(GET|POST|PUT|PATCH|DELETE) (/[^`?\s]*)", re.MULTILINE)
COMMAND = re.compile(r"(?:`|bin/)parley ([a-z][a-z-]*)")
SETTING = re.compile(r"\b(?:GATEWAY|CHATD|TOOLRUNNER|MCPGATEWAY|PARLEY)_[A-Z_]+[A-Z]\b(?!\*)")
FILE = re.compile(r"`((?:[\w-]+/)+[\w.-]+\.(?:py|toml|yaml|md|json|proto))(?:::|`)")
# Variables that a workspace finds in its environment, and nobody sets.
GIVEN_TO_WORKSPACES = frozenset({"PARLEY_EGRESS"})

in_every_document = pytest.mark.parametrize(
    "text",
    [document.read_text() for document in DOCUMENTS],
    ids=[str(document.relative_to(ROOT)) for document in DOCUMENTS],
)


@in_every_document
def test_every_route_that_is_named_is_served(text: str) -> None:
    served = served_routes()
    named = [(method, bare(path)) for method, path in ROUTE.findall(text)]
    assert [
        (method, path)
        for method, path in named
        if not any((method, f"{base}{path}") in served for base in BELOW)
    ] == []


@in_every_document
def test_every_command_that_is_named_can_be_called(text: str) -> None:
    assert [name for name in COMMAND.findall(text) if name not in COMMANDS] == []


@in_every_document
def test_every_setting_that_is_named_is_read(text: str) -> None:
    reference = (ROOT / "docs" / "configuration.md").read_text()
    known = {*re.findall(r"`([A-Z][A-Z_]*)`", reference), *GIVEN_TO_WORKSPACES}
    assert [
        name
        for name in SETTING.findall(text)
        # A setting of every service stands there under SERVICE_.
        if not {name, f"SERVICE_{name.partition('_')[2]}", name.removesuffix("_FILE")} & known
    ] == []


@in_every_document
def test_every_file_that_is_named_exists(text: str) -> None:
    below = (ROOT, ROOT / "tests", ROOT / "services" / "chatd")
    assert [
        path for path in FILE.findall(text) if not any((base / path).exists() for base in below)
    ] == []


def test_the_table_of_scopes_has_every_one_of_them() -> None:
    signing_in = (ROOT / "docs" / "signing-in.md").read_text()
    table = signing_in.split("| scopes | for |")[1].split("\n\n")[0]
    assert sorted(re.findall(r"`(\w+:\w+)`", table)) == sorted(known_scopes())


@cache
def served_routes() -> frozenset[tuple[str, str]]:
    return frozenset((route.method, bare(route.path)) for route in every_route())


def bare(path: str) -> str:
    """Return a path whose parameters have no names."""
    return re.sub(r"\{\w+\}", "{}", path)
