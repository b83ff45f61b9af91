"""Arguments get back the names that their tool knows."""

import json
from typing import Any

import pytest

from parley.tool_schemas import SchemaDialect, normalised, original_arguments
from parley.tool_schemas.argument_names import safe_names

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


NAMED = {"type": "object", "properties": {"a b": {}}}


@pytest.mark.parametrize(
    "place",
    [
        {"anyOf": [{"type": "array", "items": NAMED}, {"type": "null"}]},
        {"type": "array", "prefixItems": [NAMED]},
        {"type": "array", "items": [NAMED]},
        {"prefixItems": [{"type": "string"}], "items": NAMED},
        {"anyOf": [{"$ref": "#/$defs/several"}]},
    ],
)
def test_names_inside_of_lists_are_put_back(place: dict[str, Any]) -> None:
    several = {"type": "array", "items": {"$ref": "#/$defs/named"}}
    schema = {"properties": {"x": place}, "$defs": {"named": NAMED, "several": several}}
    given = [{"a_b": 1}] if "items" not in place or "prefixItems" not in place else ["", {"a_b": 1}]

    back = restored({"x": given}, schema)

    assert back == {"x": [{"a b": 1} if isinstance(each, dict) else each for each in given]}


@pytest.mark.parametrize(
    "place",
    [
        {"additionalProperties": NAMED},
        {"patternProperties": {"^x": NAMED, "^(y+)+$": {"type": "string"}}},
        {"anyOf": [{"type": "null"}, {"additionalProperties": {"allOf": [NAMED]}}]},
        {"if": {}, "then": {"properties": {"any": NAMED}}},
        {"dependentSchemas": {"other": {"properties": {"any": NAMED}}}},
    ],
)
def test_names_inside_of_objects_are_put_back(place: dict[str, Any]) -> None:
    assert restored({"x": {"any": {"a_b": 1}}}, {"properties": {"x": place}}) == {
        "x": {"any": {"a b": 1}}
    }


def test_names_of_alternatives_at_the_top_are_those_that_the_model_got() -> None:
    schema: dict[str, Any] = {
        "anyOf": [{"properties": {"a b": {}}}, {"properties": {"a_b": {}, "a$b": {}}}]
    }

    sent = list(normalised(json.dumps(schema), SchemaDialect.ANTHROPIC)["properties"])
    back = restored({name: number for number, name in enumerate(sent)}, schema)

    assert back == {"a b": 0, "a_b": 1, "a$b": 2}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a_b": 1, "x": 2}, {"a b": 1, "x": 2}),
        ({"a_b": 1, "y": 2}, {"a_b": 1, "y": 2}),
        ({"a_b": {"c_d": 1}, "x": 2}, {"a b": {"c d": 1}, "x": 2}),
    ],
)
def test_of_alternatives_deeper_down_the_one_with_most_names_is_meant(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    first: dict[str, Any] = {"properties": {"a b": {"properties": {"c d": {}}}, "x": {}}}
    place = {"anyOf": [first, {"properties": {"a_b": {}, "y": {}}}]}

    assert restored({"p": given}, {"properties": {"p": place}}) == {"p": expected}


def test_a_replaced_name_is_never_that_of_another_argument() -> None:
    (taken,) = set(safe_names(["a b", "a_b"]).values()) - {"a_b"}
    names = ["a b", "a_b", taken]

    assert len(set(safe_names(names).values())) == 3
    assert restored(
        dict.fromkeys(safe_names(names).values(), 1), {"properties": {name: {} for name in names}}
    ) == dict.fromkeys(names, 1)


def test_many_arguments_get_their_names() -> None:
    schema = {"properties": {"x": {"type": "array", "items": NAMED}}}

    assert restored({"x": [{"a_b": 1}] * 20_000}, schema) == {"x": [{"a b": 1}] * 20_000}


def test_arguments_that_cost_too_much_stay_as_they_are() -> None:
    forms: dict[str, Any] = {
        "anyOf": [{"properties": {"a b": {}, f"x{number}": {}}} for number in range(500)]
    }
    schema = {"properties": {"x": {"items": forms}}}
    few, many = {"x": [{"a_b": 1}] * 10}, {"x": [{"a_b": 1}] * 1000}

    assert restored(few, schema) == {"x": [{"a b": 1}] * 10}
    assert restored(many, schema) == many


def test_arguments_of_a_schema_that_contains_itself_get_their_names() -> None:
    tree = {"properties": {"a b": {"anyOf": [{"$ref": "#/$defs/t"}, {"$ref": "#"}]}}}
    schema = {"properties": {"a b": {"$ref": "#/$defs/t"}}, "$defs": {"t": tree}}

    given: Any = {}
    expected: Any = {}
    for _ in range(20):
        given, expected = {"a_b": given}, {"a b": expected}
    assert restored(given, schema) == expected


@pytest.mark.parametrize("given", [b"", b"{", b'{"_filter":1'])
def test_what_is_no_json_stays_as_it_is(given: bytes) -> None:
    assert original_arguments(given, json.dumps(SCHEMA).encode()) is given
