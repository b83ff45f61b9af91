"""E25: a model cannot ask for a weaker sandbox, because there is nothing to ask with."""

import json
from typing import Any

import pytest

from chatd.tools.workspace.toolset import TOOLS, Tool
from parley.api.workspace.v1 import process_pb2
from support.toolrunner.sandboxes import told_line

WORDS = ("sandbox", "profile", "network", "privileg", "confine", "unsafe", "landlock", "seccomp")


def names_in(schema: Any) -> set[str]:
    """Return all names of arguments, however deep."""
    match schema:
        case dict():
            own = set(schema.get("properties", {}))
            return own.union(*(names_in(value) for value in schema.values()))
        case list():
            return set().union(*(names_in(value) for value in schema))
        case _:
            return set()


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())
def test_no_tool_takes_a_word_about_its_confinement(tool: Tool) -> None:
    names = {tool.name} | names_in(json.loads(tool.input_schema_json))
    switches = [name for name in names if any(word in name.lower() for word in WORDS)]
    print(told_line(f"E25 {tool.name}", "all", len(switches), len(names) * len(WORDS)))
    assert switches == []


def test_what_is_run_says_nothing_about_its_confinement() -> None:
    names = [field.name for field in process_pb2.ProcessSpec.DESCRIPTOR.fields]
    assert [name for name in names if any(word in name for word in WORDS)] == []
