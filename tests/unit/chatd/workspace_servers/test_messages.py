"""Messages of workspace servers: what is understood, and that nothing a server sends raises."""

import json
import random  # noqa: TID251 (seeded, for a fuzz)

import pytest

from chatd.workspace_servers.domain.messages import (
    Answer,
    Progress,
    Received,
    Request,
    ToolsChanged,
    received,
    reply_line,
)
from chatd.workspace_servers.domain.tools import (
    ENTRIES_MAX,
    SCHEMA_BYTES_MAX,
    SCHEMAS_BYTES_MAX,
    listed_tools,
    specs_of,
    visible,
)

#: No float holds it.
HUGE = 10**400


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"id": 1, "result": {"a": 1}}, Answer(1, {"a": 1})),
        ({"id": 1, "error": {"message": "no"}}, Answer(1, {}, "no")),
        ({"id": 1, "result": 3}, Answer(1, {}, "it refused without a reason")),
        ({"id": "x", "method": "ping"}, Request("x", "ping")),
        ({"method": "notifications/tools/list_changed"}, ToolsChanged()),
        (
            {"method": "notifications/progress", "params": {"progressToken": 2, "progress": 1}},
            Progress(2, 1.0, None, ""),
        ),
        ({"method": "notifications/progress", "params": {"progressToken": "x"}}, None),
        (
            {"method": "notifications/progress", "params": {"progressToken": 2, "progress": HUGE}},
            None,
        ),
        ({"id": "x", "result": {}}, None),
        ({"id": "x" * 129, "method": "ping"}, None),
        ({"id": 2**64, "method": "ping"}, None),
        ([], None),
        ("text", None),
    ],
)
def test_a_line_is_understood_or_nothing(document: object, expected: Received | None) -> None:
    assert received(json.dumps(document).encode()) == expected


def test_random_bytes_are_nothing() -> None:
    chance = random.Random(7)
    for _ in range(2000):
        assert received(chance.randbytes(chance.randrange(80))) is None


def test_a_server_is_offered_a_ping_and_nothing_else() -> None:
    assert json.loads(reply_line(Request("x", "ping"))) == {
        "jsonrpc": "2.0",
        "id": "x",
        "result": {},
    }
    assert "error" in json.loads(reply_line(Request(3, "sampling/createMessage")))


def test_tools_have_unique_and_valid_names() -> None:
    entries = [
        {"name": "a.b", "inputSchema": {"type": "object"}},
        {"name": "a b", "inputSchema": {}},
        {"name": "plain", "inputSchema": {}},
        {"name": "plain", "inputSchema": {}},
        {"name": "PLAIN", "inputSchema": {}},
        {"name": "y" * 100, "inputSchema": {}},
        {"name": "z" * 129, "inputSchema": {}},
        {"name": "text", "inputSchema": {"type": "string"}},
        {"name": "large", "inputSchema": {"x": "x" * 70_000}},
        "none",
    ]
    specs = specs_of("ws_s", "id", listed_tools(entries), "digest", "generation")
    names = [spec.name for spec in specs]
    assert len(names) == len({name.lower() for name in names}) == 3
    assert all(len(name) <= 64 and name.startswith("ws_s__") for name in names)
    assert all(spec.needs_approval for spec in specs)


def test_no_invisible_character_of_a_definition_is_offered() -> None:
    entry = {"name": "one", "description": "x\u200by", "inputSchema": {"title": "z\u202e"}}
    (spec,) = specs_of("ws_s", "id", listed_tools([entry]), "digest", "generation")
    assert (spec.name, spec.description) == ("ws_s__one", "xy")
    assert json.loads(spec.input_schema_json) == {"type": "object", "title": "z"}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", ""),
        ("Grüße,\n\tdas reicht.", "Grüße,\n\tdas reicht."),
        ("a\u00a0b\u2028c", "a\u00a0b\u2028c"),
        ("a\r\n\u200bb\ud800\ue000", "a\nb"),
    ],
)
def test_what_people_see_of_a_text_is_kept(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_the_schemas_of_a_server_are_bounded_together() -> None:
    schema = {"title": "x" * (SCHEMA_BYTES_MAX - 100)}
    entries = [{"name": f"tool{n}", "inputSchema": schema} for n in range(8)]
    tools = listed_tools(entries[4:], listed_tools(entries[:4]))
    assert sum(len(tool.input_schema_json) for tool in tools) <= SCHEMAS_BYTES_MAX
    assert [tool.name for tool in tools] == ["tool0", "tool1", "tool2", "tool3"]


def test_entries_beyond_the_maximum_are_not_looked_at() -> None:
    entries: list[object] = [*["none"] * ENTRIES_MAX, {"name": "late", "inputSchema": {}}]
    assert listed_tools(entries) == ()


def test_what_is_cut_of_a_definition_is_not_cleaned() -> None:
    entry = {"name": "one", "description": "\u200b" * 4096 + "x", "inputSchema": {}}
    assert [tool.description for tool in listed_tools([entry])] == [""]
