"""What is offered, and what the documents say of it."""

import json
import re
from pathlib import Path

import pytest

from chatd.content.domain.tools import EditStyle, Executor, ToolSpec
from chatd.tools.workspace import TOOLS, Tool

DOCUMENT = (Path(__file__).parents[4] / "docs" / "tools.md").read_text()


def test_the_document_lists_every_tool_in_order() -> None:
    assert re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE) == list(TOOLS)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_the_document_names_only_arguments_that_exist(tool: Tool) -> None:
    (row,) = re.findall(rf"^\| `{tool.name}` \|.*\|(.*)\|$", DOCUMENT, re.MULTILINE)
    plain = re.sub(r"\([^)]*\)", "", row).split("with")[0]
    named = set(re.findall(r"`(\w+)", plain)) - {"edit_files"}
    assert named
    assert named <= set(json.loads(tool.input_schema_json)["properties"])


def test_a_tool_is_offered_with_its_journal_and_its_models() -> None:
    patch = TOOLS["apply_patch"]
    assert patch.spec("j7") == ToolSpec(
        "apply_patch",
        patch.description,
        patch.input_schema_json,
        Executor.TOOLRUNNER,
        "j7",
        edit_style=EditStyle.PATCH,
    )


def test_only_tools_that_change_something_are_looked_up_after_a_loss() -> None:
    assert {tool.name for tool in TOOLS.values() if tool.has_effect} == {
        "execute",
        "process_write",
        "process_signal",
        "write_file",
        "edit_files",
        "apply_patch",
        "undo_edit",
    }
