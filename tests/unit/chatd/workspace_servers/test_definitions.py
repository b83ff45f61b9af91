"""Definitions of workspace servers: what a file may say, and what changes a digest."""

import json
from typing import Any

import pytest

from chatd.workspace_servers.domain.definition import (
    BAD_NAME,
    NOT_STDIO,
    Definitions,
    ServerDefinition,
    definitions_of,
)


def defined(**servers: Any) -> Definitions:
    return definitions_of(json.dumps({"mcpServers": servers}))


def test_a_definition_has_its_command_and_a_digest_of_everything() -> None:
    given = {"command": "node", "args": ["a.js"], "env": {"KEY": "x"}}
    (server,) = defined(files=given).servers
    assert server == ServerDefinition(
        "files", "node", ("a.js",), (("KEY", "x"),), server.digest, ""
    )
    changes: tuple[dict[str, Any], ...] = (
        {"command": "sh"},
        {"args": ["b.js"]},
        {"env": {"KEY": "y"}},
        {"env": {"OTHER": "x"}},
    )
    digests = {defined(files={**given, **change}).servers[0].digest for change in changes}
    assert len(digests) == len(changes)
    assert server.digest not in digests
    assert defined(other=given).servers[0].digest != server.digest


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", ".mcp.json is not valid JSON; correct it"),
        ("[]", ".mcp.json has no object mcpServers; add it"),
        ('{"mcpServers": []}', ".mcp.json has no object mcpServers; add it"),
        (
            json.dumps({"mcpServers": {str(n): {"command": "x"} for n in range(17)}}),
            ".mcp.json has more than 16 servers; remove some",
        ),
        ("[" * 60_000, ".mcp.json is not valid JSON; correct it"),
        (" " * 70_000, ".mcp.json is larger than 65536 bytes; shorten it"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(text: str, problem: str) -> None:
    assert definitions_of(text) == Definitions(problem=problem)


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("a__b", {"command": "x"}, BAD_NAME),
        ("a b", {"command": "x"}, BAD_NAME),
        ("_a", {"command": "x"}, BAD_NAME),
        ("x" * 33, {"command": "x"}, BAD_NAME),
        ("remote", {"url": "https://mcp.example.org"}, NOT_STDIO),
        ("text", "x", "its definition is no object; correct it"),
        ("empty", {"command": ""}, "its command is no text; correct it"),
        ("nul", {"command": "a\0b"}, "its command is no text; correct it"),
        ("list", {"command": "x", "args": "y"}, "its args are no list of at most 64 texts; correct "
         "them"),
        ("env", {"command": "x", "env": {"A=B": "y"}}, "its env is no object of at most 64 texts; "
         "correct it"),
    ],
)  # fmt: skip
def test_a_definition_that_cannot_be_used_says_why_and_hides_no_other(
    name: str, given: Any, problem: str
) -> None:
    found = defined(**{name: given, "good": {"command": "x"}})
    assert [each.problem for each in found.servers] == [problem, ""]
    assert found.servers[0].digest == ""
