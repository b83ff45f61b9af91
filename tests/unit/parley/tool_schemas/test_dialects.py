"""Schemas of tools that some provider refuses, and what each provider is given instead."""

import json
from typing import Any

import msgspec
import pytest

from parley.tool_schemas import Budget, SchemaDialect, SchemaUnusable, check_schema, normalised
from parley.tool_schemas.dialects import outcome_of

TEXT = {"type": "string"}
TOO_LARGE = "is too large when its references are resolved"


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def sent(schema: object, dialect: SchemaDialect) -> dict[str, Any]:
    return normalised(json.dumps(schema), dialect)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = an_object(a=schema)
    return schema


#: What is given, and what Anthropic, OpenAI and servers that are compatible with it get.
TABLE: dict[str, tuple[Any, Any, Any, Any]] = {
    "an empty schema": (
        {},
        {"type": "object"},
        an_object(),
        an_object(),
    ),
    "no type at the top": (
        {"properties": {"a": TEXT}},
        an_object(a=TEXT),
        an_object(a=TEXT),
        an_object(a=TEXT),
    ),
    "several types at the top": (
        {"type": ["object", "null"], "properties": {"a": TEXT}},
        an_object(a=TEXT),
        an_object(a=TEXT),
        an_object(a=TEXT),
    ),
    "a reference at the top": (
        {"$ref": "#/definitions/A", "definitions": {"A": an_object(a=TEXT)}},
        {**an_object(a=TEXT), "definitions": {"A": an_object(a=TEXT)}},
        {**an_object(a=TEXT), "definitions": {"A": an_object(a=TEXT)}},
        an_object(a=TEXT),
    ),
    "a reference to a definition": (
        {**an_object(a={"$ref": "#/$defs/A", "description": "x"}), "$defs": {"A": TEXT}},
        {**an_object(a={"$ref": "#/$defs/A", "description": "x"}), "$defs": {"A": TEXT}},
        {**an_object(a={"$ref": "#/$defs/A", "description": "x"}), "$defs": {"A": TEXT}},
        an_object(a={"type": "string", "description": "x"}),
    ),
    "a reference to a place that may move": (
        an_object(a=TEXT, b={"$ref": "#/properties/a"}),
        an_object(a=TEXT, b=TEXT),
        an_object(a=TEXT, b=TEXT),
        an_object(a=TEXT, b=TEXT),
    ),
    "a definition that contains itself": (
        {**an_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": an_object(b={"$ref": "#/$defs/A"})}},
        {**an_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": an_object(b={"$ref": "#/$defs/A"})}},
        {**an_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": an_object(b={"$ref": "#/$defs/A"})}},
        an_object(a=an_object(b=an_object())),
    ),
    "the whole inside of itself": (
        an_object(a={"$ref": "#"}),
        an_object(a=an_object(a={"type": "object"})),
        an_object(a=an_object(a=an_object())),
        an_object(a=an_object(a=an_object())),
    ),
    "alternatives at the top": (
        {
            "oneOf": [
                {**an_object(kind=TEXT, a=TEXT), "required": ["kind", "a"]},
                {**an_object(kind=TEXT, b=TEXT), "required": ["kind", "b"]},
            ]
        },
        {**an_object(kind=TEXT, a=TEXT, b=TEXT), "required": ["kind"]},
        {**an_object(kind=TEXT, a=TEXT, b=TEXT), "required": ["kind"]},
        {**an_object(kind=TEXT, a=TEXT, b=TEXT), "required": ["kind"]},
    ),
    "alternatives at the top that disagree": (
        {"anyOf": [an_object(a=TEXT), an_object(a={"type": "integer"})]},
        an_object(a={"anyOf": [TEXT, {"type": "integer"}]}),
        an_object(a={"anyOf": [TEXT, {"type": "integer"}]}),
        an_object(a={"anyOf": [TEXT, {"type": "integer"}]}),
    ),
    "parts of the whole at the top": (
        {
            "allOf": [{"$ref": "#/$defs/A"}, {"required": ["b"]}],
            "properties": {"b": TEXT},
            "$defs": {"A": {"properties": {"a": TEXT}, "required": ["a"]}},
        },
        {
            **an_object(b=TEXT, a=TEXT),
            "required": ["a", "b"],
            "$defs": {"A": {"properties": {"a": TEXT}, "required": ["a"]}},
        },
        {
            **an_object(b=TEXT, a=TEXT),
            "required": ["a", "b"],
            "$defs": {"A": {"properties": {"a": TEXT}, "required": ["a"]}},
        },
        {**an_object(b=TEXT, a=TEXT), "required": ["a", "b"]},
    ),
    "alternatives deeper down": (
        an_object(a={"oneOf": [TEXT, {"type": "null"}]}, b={"allOf": [TEXT, {"minLength": 1}]}),
        an_object(a={"oneOf": [TEXT, {"type": "null"}]}, b={"allOf": [TEXT, {"minLength": 1}]}),
        an_object(a={"oneOf": [TEXT, {"type": "null"}]}, b={"allOf": [TEXT, {"minLength": 1}]}),
        an_object(a=TEXT, b={"type": "string", "minLength": 1}),
    ),
    "other properties by a schema": (
        {**an_object(a={"type": "object", "additionalProperties": TEXT})},
        {**an_object(a={"type": "object", "additionalProperties": TEXT})},
        an_object(a={**an_object(), "additionalProperties": TEXT}),
        an_object(a=an_object()),
    ),
    "no other properties": (
        {**an_object(a=TEXT), "additionalProperties": False},
        {**an_object(a=TEXT), "additionalProperties": False},
        {**an_object(a=TEXT), "additionalProperties": False},
        {**an_object(a=TEXT), "additionalProperties": False},
    ),
    "values that may be null": (
        an_object(a={"type": "string", "nullable": True}, b={"type": ["integer", "null"]}),
        an_object(a={"type": ["string", "null"]}, b={"type": ["integer", "null"]}),
        an_object(a={"type": ["string", "null"]}, b={"type": ["integer", "null"]}),
        an_object(a=TEXT, b={"type": "integer"}),
    ),
    "names that are refused": (
        {**an_object(**{"$filter": TEXT, "user name": TEXT}), "required": ["$filter"]},
        {**an_object(_filter=TEXT, user_name=TEXT), "required": ["_filter"]},
        {**an_object(_filter=TEXT, user_name=TEXT), "required": ["_filter"]},
        {**an_object(_filter=TEXT, user_name=TEXT), "required": ["_filter"]},
    ),
    "keywords of older drafts": (
        an_object(
            a={"type": "array", "items": [TEXT, {"type": "integer"}]},
            b={"type": "number", "minimum": 1, "exclusiveMinimum": True},
            c={"type": "string", "required": True},
            d={"type": "any"},
        ),
        an_object(
            a={"type": "array", "prefixItems": [TEXT, {"type": "integer"}]},
            b={"type": "number", "exclusiveMinimum": 1},
            c=TEXT,
            d={},
        ),
        an_object(
            a={"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "items": {}},
            b={"type": "number", "exclusiveMinimum": 1},
            c=TEXT,
            d={},
        ),
        an_object(
            a={"type": "array", "items": {"anyOf": [TEXT, {"type": "integer"}]}},
            b={"type": "number"},
            c=TEXT,
            d={},
        ),
    ),
    "keywords with values that they cannot have": (
        an_object(a={"type": "string", "minLength": "1", "enum": [], "description": None}),
        an_object(a=TEXT),
        an_object(a=TEXT),
        an_object(a=TEXT),
    ),
    "arrays of anything": (
        an_object(a={"type": "array"}),
        an_object(a={"type": "array"}),
        an_object(a={"type": "array", "items": {}}),
        an_object(a={"type": "array", "items": {}}),
    ),
    "fixed values": (
        an_object(a={"const": "x"}, b={"enum": [1, 2], "description": "Which."}),
        an_object(a={"const": "x"}, b={"enum": [1, 2], "description": "Which."}),
        an_object(a={"const": "x"}, b={"enum": [1, 2], "description": "Which."}),
        an_object(
            a={"type": "string", "enum": ["x"]}, b={"description": "Which. One of: 1, 2."}
        ),
    ),
    "formats and conditions": (
        an_object(a={"type": "string", "format": "uri", "not": {"pattern": "x"}}),
        an_object(a={"type": "string", "format": "uri", "not": {"pattern": "x"}}),
        an_object(a={"type": "string", "format": "uri", "not": {"pattern": "x"}}),
        an_object(a=TEXT),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_each_provider_gets_a_schema_that_it_accepts(name: str) -> None:
    given, anthropic, openai, compatible = TABLE[name]

    assert sent(given, SchemaDialect.ANTHROPIC) == anthropic
    assert sent(given, SchemaDialect.OPENAI) == openai
    assert sent(given, SchemaDialect.COMPATIBLE) == compatible
    check_schema(given)


def test_what_is_too_deep_ends_with_its_kind() -> None:
    made = sent(nested(20), SchemaDialect.COMPATIBLE)

    for _ in range(11):
        made = made["properties"]["a"]
    assert made == an_object()
    assert sent(nested(20), SchemaDialect.ANTHROPIC) == nested(20)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array"}, "does not describe an object"),
        (an_object(a={"$ref": "https://schemas.example/a"}), "refers to another document"),
        (an_object(a={"$ref": "#/$defs/a"}), "refers to a part that it does not have"),
        (an_object(a={"$ref": "#name"}), "refers to a part by a name, which is not supported"),
        (an_object(**{f"a{number}": TEXT for number in range(6000)}), TOO_LARGE),
        (
            {
                "allOf": [{"$ref": "#/$defs/d0"}],
                "$defs": {
                    f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{(number + 1) % 40}"}] * 2}
                    for number in range(40)
                },
            },
            TOO_LARGE,
        ),
        (
            {
                **an_object(**{f"a{number}": {"$ref": "#/$defs/d"} for number in range(1000)}),
                "$defs": {"d": {"description": "x" * 30_000}},
            },
            TOO_LARGE,
        ),
    ],
)
def test_a_schema_that_no_provider_can_be_given_says_why(
    schema: dict[str, Any], reason: str
) -> None:
    with pytest.raises(SchemaUnusable, match=f"^{reason}$"):
        check_schema(schema)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "true"])
@pytest.mark.parametrize("dialect", SchemaDialect)
def test_what_is_no_schema_is_refused(text: str, dialect: SchemaDialect) -> None:
    with pytest.raises(SchemaUnusable):
        normalised(text, dialect)


def test_a_property_with_many_forms_may_have_any() -> None:
    schema = {"anyOf": [an_object(a={"const": number}) for number in range(40)]}

    assert sent(schema, SchemaDialect.ANTHROPIC) == an_object(a={})


def test_definitions_that_multiply_are_refused_where_references_cannot_stay() -> None:
    parts = {
        f"d{number}": an_object(
            x={"$ref": f"#/$defs/d{number + 1}"}, y={"$ref": f"#/$defs/d{number + 1}"}
        )
        for number in range(40)
    }
    schema = {**an_object(a={"$ref": "#/$defs/d0"}), "$defs": {**parts, "d40": {}}}

    assert sent(schema, SchemaDialect.ANTHROPIC) == schema
    with pytest.raises(SchemaUnusable, match=TOO_LARGE):
        sent(schema, SchemaDialect.COMPATIBLE)


def times(reference: str, number: int) -> dict[str, Any]:
    return {"anyOf": [{"$ref": reference}] * number}


@pytest.mark.parametrize(
    "schema",
    [
        an_object(a={"anyOf": [1] * 6000}),
        an_object(
            a={"anyOf": [1] * 1000}, b=times("#/properties/a", 65), c=times("#/properties/b", 65)
        ),
        an_object(a={"prefixItems": [True] * 1000}, b=times("#/properties/a", 6)),
        an_object(a={"x" * 60_000: 1}, b=times("#/properties/a", 10)),
        an_object(a={"properties": {"x" * 60_000: 1}}, b=times("#/properties/a", 10)),
        an_object(a={"description": "x" * 60_000, **times("#/properties/a", 20)}),
        {
            **an_object(**{f"a{number}": {"$ref": "#/allOf/0"} for number in range(60)}),
            "allOf": [{"$ref": f"#/allOf/{number + 1}"} for number in range(100)] + [{}],
        },
        {"anyOf": [{"$ref": "#/$defs/a"}] * 100, "$defs": {"a": an_object(a=1, b=2)}}
        | {"allOf": [{"properties": {f"p{number}": 1 for number in range(2000)}}] * 2},
    ],
    ids=range(8),
)
@pytest.mark.parametrize("dialect", SchemaDialect)
def test_everything_that_is_read_counts(schema: dict[str, Any], dialect: SchemaDialect) -> None:
    with pytest.raises(SchemaUnusable, match=TOO_LARGE):
        sent(schema, dialect)


def test_a_long_chain_of_references_is_refused() -> None:
    chain: dict[str, Any] = {
        f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(300)
    }
    schema = {**an_object(a={"$ref": "#/$defs/d0"}), "$defs": {**chain, "d300": TEXT}}

    with pytest.raises(SchemaUnusable, match="has too many references that lead"):
        check_schema(schema)


def test_required_is_what_every_alternative_requires_in_the_order_of_the_first() -> None:
    names = [f"a{number}" for number in range(50)]
    alternatives = [{"required": [*names[:40], "x"]}, {"required": ["y", *reversed(names)]}]
    schema = {**an_object(**dict.fromkeys(names, TEXT)), "anyOf": alternatives}

    assert sent(schema, SchemaDialect.ANTHROPIC)["required"] == names[:40]
    assert "required" not in sent({"anyOf": [*alternatives, {}]}, SchemaDialect.ANTHROPIC)
    every = {"allOf": [{"required": ["a", "b"]}, {"required": ["b", "c"]}]}
    assert sent(every, SchemaDialect.ANTHROPIC)["required"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"anyOf": 5}}, "anyOf": [{"properties": {"x": {}}}]},
        an_object(a={"anyOf": ["b", 1, None]}, b={"items": 3, "allOf": {}}),
        an_object(a={"type": {}, "required": [{}, []], "enum": 1, "properties": [1]}),
        {**an_object(a=TEXT), "required": [["a"], {"a": 1}, "a"]},
        an_object(a={"maxLength": 1.5, "minLength": -1, "minItems": True, "maximum": 10**400}),
        an_object(a={"maxLength": 10**400, "minLength": 1e300}),
    ],
)
@pytest.mark.parametrize("dialect", SchemaDialect)
def test_values_that_keywords_cannot_have_are_left_out(
    schema: dict[str, Any], dialect: SchemaDialect
) -> None:
    check_schema(schema)
    made = msgspec.json.encode(sent(schema, dialect))

    assert b"max" not in made


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (an_object(a={"maxLength": 10**5000}), "has a value that cannot be used"),
        (an_object(a={"default": object()}), "has a value that cannot be used"),
        (
            {**an_object(a={"$ref": f"#/anyOf/{'1' * 5000}"}), "anyOf": [{}]},
            "refers to a part that it does not have",
        ),
        (
            {**an_object(a={"$ref": "#/anyOf/²"}), "anyOf": [{}]},
            "refers to a part that it does not have",
        ),
    ],
)
def test_hostile_values_are_refused_as_any_other_schema(
    schema: dict[str, Any], reason: str
) -> None:
    with pytest.raises(SchemaUnusable, match=f"^{reason}$"):
        check_schema(schema)


def test_a_schema_that_cannot_be_used_is_read_once() -> None:
    schema = an_object(only_in_this_test={"$ref": "https://schemas.example/a"})

    misses = []
    for _ in range(2):
        with pytest.raises(SchemaUnusable, match="refers to another document"):
            sent(schema, SchemaDialect.ANTHROPIC)
        misses.append(outcome_of.cache_info().misses)

    assert misses[0] == misses[1]


def test_schemas_that_are_checked_together_have_one_budget() -> None:
    whole, broken = Budget(100), an_object(a={"$ref": "#/$defs/absent"})

    check_schema(an_object(a=TEXT), whole)
    was_spent = whole.is_spent
    for _ in range(100):
        with pytest.raises(SchemaUnusable, match="refers to a part that it does not have"):
            check_schema(broken, whole)

    assert (was_spent, whole.is_spent) == (False, True)


@pytest.mark.parametrize("reference", ["https://schemas.example/a", "#/$defs/absent", "#name"])
def test_a_definition_that_nothing_uses_and_cannot_be_resolved_loses_no_arguments(
    reference: str,
) -> None:
    unused = an_object(x={"$ref": reference})
    schema = {**an_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": TEXT, "B": unused}}

    check_schema(schema)

    kept = {**schema, "$defs": {"A": TEXT, "B": {}}}
    assert sent(schema, SchemaDialect.ANTHROPIC) == kept
    assert sent(schema, SchemaDialect.OPENAI) == kept
    assert sent(schema, SchemaDialect.COMPATIBLE) == an_object(a=TEXT)


@pytest.mark.parametrize("dialect", SchemaDialect)
def test_a_schema_that_is_larger_than_a_model_should_read_is_refused(
    dialect: SchemaDialect,
) -> None:
    # Within the budget: this counts what a provider gets.
    schema = {"description": "x" * 90_000, **an_object(a={"description": "x" * 50_000})}

    with pytest.raises(SchemaUnusable, match=TOO_LARGE):
        sent(schema, dialect)
    with pytest.raises(SchemaUnusable, match=TOO_LARGE):
        check_schema(schema)


def test_definitions_that_only_some_providers_get_count_in_the_check() -> None:
    unused = {f"d{number}": {"description": "x" * 1000} for number in range(1000)}
    schema = {**an_object(a=TEXT), "$defs": unused}

    assert sent(schema, SchemaDialect.COMPATIBLE) == an_object(a=TEXT)
    with pytest.raises(SchemaUnusable, match=TOO_LARGE):
        check_schema(schema)
