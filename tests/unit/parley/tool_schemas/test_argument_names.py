"""Arguments get back the names that their tool knows."""

import json
from typing import Any

import pytest

from parley.tool_schemas import SchemaDialect, normalised, original_arguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "$filter": {"type": "string"},
        "plain": {"type": "string"},
        "list": {"type": "array", "items": {"$ref": "#/$defs/entry"}},
    },
    "oneOf": [{"properties": {"@type": {"type": "string"}}}],
    "$defs": {"entry": {"type": "object", "properties": {"first name": {"type": "string"}}}},
}


def restored(arguments: object, schema: object = SCHEMA) -> Any:
    given = json.dumps(arguments).encode()
    return json.loads(original_arguments(given, json.dumps(schema).encode()))


def test_arguments_are_sent_under_the_names_of_the_tool() -> None:
    given = {"_filter": "a", "plain": "b", "_type": "c", "list": [{"first_name": "d"}, 1]}

    assert restored(given) == {
        "$filter": "a",
        "plain": "b",
        "@type": "c",
        "list": [{"first name": "d"}, 1],
    }


@pytest.mark.parametrize(
    "arguments",
    [{"$filter": "a"}, {"$filter": "a", "_filter": "b"}, {"unknown": {"_filter": 1}}, {}, [], 1],
)
def test_arguments_with_other_names_stay_as_they_are(arguments: object) -> None:
    assert restored(arguments) == arguments


def test_names_that_would_be_the_same_stay_apart() -> None:
    names = ["a b", "a$b", "a_b", "x" * 70, "x" * 71, ""]
    schema = {"type": "object", "properties": {name: {} for name in names}}

    sent = list(normalised(json.dumps(schema), SchemaDialect.ANTHROPIC)["properties"])
    back = restored({name: number for number, name in enumerate(sent)}, schema)

    assert len(set(sent)) == len(names)
    assert all(0 < len(name) <= 64 for name in sent)
    assert back == {name: number for number, name in enumerate(names)}


def test_arguments_of_plain_names_are_the_same_bytes() -> None:
    given = b'{ "a" : 1.50 }'

    assert original_arguments(given, b'{"properties":{"a":{}}}') is given
    assert original_arguments(given, b"{") is given
    assert original_arguments(given, b"") is given
