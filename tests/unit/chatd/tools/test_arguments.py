"""What tools take: described, and refused by name when it is something else."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatd.tools.workspace.arguments import BadArguments, read, seconds_of
from chatd.tools.workspace.execute import ExecuteInput
from chatd.tools.workspace.file_changes import EditFilesInput
from chatd.tools.workspace.file_reading import ReadFileInput
from chatd.tools.workspace.literals import refuse_literal
from chatd.tools.workspace.processes import ProcessSignalInput
from chatd.tools.workspace.toolset import TOOLS, Tool
from support.session.examples import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)


def of_all(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of all arguments, however deep."""
    found = []
    for each in schema.get("properties", {}).values():
        found += [each, *of_all(each)]
    return found + (of_all(schema["items"]) if "items" in schema else [])


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_argument_is_described_and_nothing_else_is_taken(tool: Tool) -> None:
    schema = json.loads(tool.input_schema_json)
    assert schema["additionalProperties"] is False
    assert [each for each in of_all(schema) if not each.get("description")] == []
    assert "$ref" not in tool.input_schema_json
    assert len(tool.description) > 100


def test_arguments_that_are_left_out_or_null_have_their_defaults() -> None:
    assert read(ExecuteInput, '{"command": "ls", "timeout": null}') == ExecuteInput(command="ls")


@pytest.mark.parametrize(
    ("takes", "args_json", "problem", "hint"),
    [
        (ReadFileInput, '{"path": "a", "PATH": "b"}', "differ only in case", "each argument once"),
        (ReadFileInput, '{"path": "a", "path": "b"}', "names 'path' twice", "each argument once"),
        (ReadFileInput, '{"Path": "a"}', "no argument 'Path'", "did you mean path?"),
        (ReadFileInput, '{"path": "a", "ofset": 2}', "'ofset'", "did you mean offset?"),
        (ReadFileInput, '{"path": "a", "zzz": 2}', "'zzz'", "it takes model_intent, path, offset"),
        (ReadFileInput, "{}", "required field `path`", "give path: "),
        (ReadFileInput, '{"path": null}', "path: expected a text, got null", "path: "),
        (ReadFileInput, '{"path": 7}', "path: expected a text, got a whole number", "path: "),
        (ReadFileInput, '{"path": "a", "offset": "3"}', "offset: expected a whole", "offset: "),
        (ReadFileInput, '{"path": "a", "offset": 0}', "offset: expected a whole", "offset: "),
        (ReadFileInput, "[]", "must be a JSON object", "one JSON object"),
        (ReadFileInput, '{"path": ', "not valid JSON", "one JSON object"),
        (ReadFileInput, '{"path": "\\ud800"}', "half of a character", "one JSON object"),
        (ExecuteInput, '{"command": "ls", "timeout": 5}', "expected a text", 'such as "10s"'),
        (ExecuteInput, '{"command": "ls", "env": {"A": 1}}', "env[...]: expected a text", "it"),
        (
            ProcessSignalInput,
            '{"process_id": "p", "signal": "hup"}',
            "signal: invalid enum value 'hup'",
            "One of interrupt, kill, terminate.",
        ),
        (
            EditFilesInput,
            '{"files": [{"path": "a", "edits": [{"search": "x", "new_text": "y"}]}]}',
            "files[0].edits[0]: the object contains unknown field `search`",
            "it takes old_text, new_text, replace_all",
        ),
        (
            EditFilesInput,
            '{"files": [{"path": "a", "PATH": "b", "edits": []}]}',
            "files[0]: the object contains unknown field `PATH`",
            "did you mean path?",
        ),
        (
            EditFilesInput,
            '{"files": [{"path": "a", "edits": [{"new_text": "y"}]}]}',
            "files[0].edits[0]: the object missing required field `old_text`",
            "give old_text: Text that is in the file",
        ),
        (
            EditFilesInput,
            '{"files": [{"path": "a", "edits": [{"old_text": "", "new_text": "y"}]}]}',
            "files[0].edits[0].old_text: ",
            "old_text: Text that is in the file",
        ),
        (EditFilesInput, '{"files": []}', "files: expected a list", "files: The files to edit."),
    ],
)
def test_a_mistake_is_told_by_its_name_with_what_to_do(
    takes: type[Any], args_json: str, problem: str, hint: str
) -> None:
    with pytest.raises(BadArguments) as refused:
        read(takes, args_json)
    assert problem in refused.value.problem
    assert hint in refused.value.hint


@settings(max_examples=examples(50), deadline=None)
@given(JSON)
def test_no_json_makes_the_reading_crash(value: Any) -> None:
    for tool in TOOLS.values():
        with suppress(BadArguments):
            assert isinstance(read(tool.takes, json.dumps(value)), tool.takes)


@settings(max_examples=examples(50), deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: JSON
            for tool in TOOLS.values()
            for name in json.loads(tool.input_schema_json)["properties"]
        },
    )
)
def test_no_value_of_a_known_argument_makes_the_reading_crash(value: Any) -> None:
    for tool in TOOLS.values():
        known = json.loads(tool.input_schema_json)["properties"]
        told = {name: each for name, each in value.items() if name in known}
        with suppress(BadArguments):
            assert isinstance(read(tool.takes, json.dumps(told)), tool.takes)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0),
        ("0s", 0.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
        (" 2m ", 120.0),
    ],
)
def test_a_duration_is_a_number_with_its_unit(text: str, seconds: float) -> None:
    assert seconds_of(text, "timeout") == seconds


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "10 s", "1e3s", "soon", "\u0661s"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(BadArguments, match=r"timeout: .* is not a duration"):
        seconds_of(text, "timeout")


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ('{"command": "ls -l"}', "ls -l"),
        ('["ls", "-l", "a b"]', "ls -l 'a b'"),
        ("['ls', '-l']", "ls -l"),
        ("{'cmd': 'make'}", "make"),
        ("('ls',)", "ls"),
        ("{}", "ls -l"),
        ("[1]", "ls -l"),
    ],
)
def test_a_value_is_not_taken_for_a_command(command: str, meant: str) -> None:
    with pytest.raises(BadArguments, match="which no shell can run") as refused:
        refuse_literal(command)
    assert refused.value.hint == f"write the command line itself, such as {meant}"


@pytest.mark.parametrize(
    "command",
    [
        "[ -f a ]",
        "[[ -f a ]]",
        "{ ls; }",
        "(ls)",
        "(cd a; ls)",
        '"ls"',
        "ls",
        "[" * 5000,
        "{'\\d'}x",
    ],
)
def test_a_command_that_only_begins_like_a_value_is_one(command: str) -> None:
    refuse_literal(command)
