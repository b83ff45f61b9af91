"""What OpenAI's two wire formats share."""

import json
from typing import Any

import pytest

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelError
from chatd.models.engine.target import Target
from chatd.providers.openai_tools import (
    dialect_of,
    effort_of,
    flag_option,
    parameters_of,
    thinks,
    tool_option,
    with_extra_body,
)
from parley.settings import Secret
from parley.tool_schemas import SchemaDialect


def target(model_name: str = "gpt-5", **options: object) -> Target:
    return Target("p", ProviderType.OPENAI, "OpenAI", model_name, "", Secret("key"), options)


def parameters(schema: object) -> Any:
    return json.loads(bytes(parameters_of(json.dumps(schema), SchemaDialect.OPENAI)))


@pytest.mark.parametrize(
    ("model_name", "wanted", "sent"),
    [
        ("gpt-5", "", ""),
        ("gpt-5", "nonsense", ""),
        ("gpt-5", "none", "minimal"),
        ("gpt-5-mini-2025-08-07", "max", "high"),
        ("gpt-5-pro", "low", "high"),
        ("gpt-5-codex", "minimal", "low"),
        ("gpt-5.1", "minimal", "none"),
        ("gpt-5.1-codex-max", "max", "xhigh"),
        ("gpt-5.2", "max", "xhigh"),
        ("gpt-5.4-pro", "low", "medium"),
        ("gpt-5.6-sol", "max", "max"),
        ("gpt-5.10", "max", "max"),
        ("gpt-6", "none", "none"),
        ("o4-mini", "none", "low"),
        ("o3", "xhigh", "high"),
        ("openai/gpt-oss-20b", "max", "high"),
        ("my-deployment", "xhigh", "high"),
        ("gpt-4o", "high", ""),
        ("gpt-4.1-mini", "low", ""),
        ("ft:gpt-4o:acme::1", "low", ""),
        ("gpt-5-chat-latest", "high", ""),
    ],
)
def test_an_effort_is_clamped_to_what_a_model_takes(
    model_name: str, wanted: str, sent: str
) -> None:
    assert effort_of(target(model_name), wanted) == sent


def test_an_administrator_knows_better_what_a_model_takes() -> None:
    known = target("my-deployment", efforts=["high", "minimal"])
    assert [effort_of(known, effort) for effort in ("none", "medium", "max")] == [
        "minimal",
        "minimal",
        "high",
    ]
    assert thinks(known)
    assert not thinks(target("gpt-9", efforts=[]))
    assert not thinks(target("gpt-4o"))


def test_an_object_without_properties_gets_none_and_requires_none() -> None:
    assert parameters({"type": "object", "properties": None, "required": []}) == {
        "type": "object",
        "properties": {},
    }


def test_objects_are_put_right_all_the_way_down() -> None:
    bare = {"type": "object", "required": None}
    whole = {"type": "object", "properties": {}}
    assert parameters(
        {
            "type": "object",
            "properties": {"required": bare, "list": {"type": "array", "items": bare}},
            "required": ["list"],
            "$defs": {"one": {"anyOf": [bare, {"type": "null"}]}},
            "additionalProperties": False,
        }
    ) == {
        "type": "object",
        "properties": {"required": whole, "list": {"type": "array", "items": whole}},
        "required": ["list"],
        "$defs": {"one": {"anyOf": [whole, {"type": "null"}]}},
        "additionalProperties": False,
    }


def test_values_in_a_schema_are_not_taken_for_schemas() -> None:
    schema = {"type": "object", "properties": {"a": {"default": {"type": "object"}}}}
    assert parameters(schema) == schema


def test_alternatives_at_the_top_become_what_may_be_there() -> None:
    assert parameters(
        {
            "anyOf": [
                {"properties": {"a": {"type": "string"}}},
                {"properties": {"b": {"type": "string"}}},
            ]
        }
    ) == {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000])
def test_what_is_no_schema_lets_a_tool_take_anything(text: str) -> None:
    assert json.loads(bytes(parameters_of(text, SchemaDialect.OPENAI))) == {
        "type": "object",
        "properties": {},
    }


@pytest.mark.parametrize(
    ("provider", "dialect"),
    [
        (ProviderType.OPENAI, SchemaDialect.OPENAI),
        (ProviderType.AZURE, SchemaDialect.OPENAI),
        (ProviderType.OPENAI_COMPATIBLE, SchemaDialect.COMPATIBLE),
    ],
)
def test_servers_of_others_get_plainer_schemas(
    provider: ProviderType, dialect: SchemaDialect
) -> None:
    assert dialect_of(Target("p", provider, "P", "m", "", Secret("key"), {})) is dialect


def test_extra_lists_grow_objects_merge_and_the_rest_wins() -> None:
    body = {"include": ["a"], "text": {"verbosity": "low"}, "store": True}
    extra = {"include": ["b"], "text": {"format": {"type": "text"}}, "store": False, "user": "u"}
    assert with_extra_body(body, target(extra_body=extra)) == {
        "include": ["a", "b"],
        "text": {"verbosity": "low", "format": {"type": "text"}},
        "store": False,
        "user": "u",
    }
    assert body == {"include": ["a"], "text": {"verbosity": "low"}, "store": True}


def test_a_tool_of_the_provider_is_off_on_or_set_up() -> None:
    told = [tool_option(target(**each), "web_search") for each in WEB_SEARCHES]
    assert told == [None, None, {}, {"search_context_size": "low"}]


WEB_SEARCHES: list[dict[str, Any]] = [
    {},
    {"web_search": False},
    {"web_search": True},
    {"web_search": {"search_context_size": "low"}},
]


@pytest.mark.parametrize(
    "read",
    [
        lambda: flag_option(target(store="yes"), "store", default=True),
        lambda: tool_option(target(web_search="yes"), "web_search"),
        lambda: with_extra_body({}, target(extra_body=[])),
        lambda: effort_of(target(efforts=["huge"]), "low"),
        lambda: effort_of(target(efforts=7), "low"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused(read: Any) -> None:
    with pytest.raises(ModelError) as caught:
        read()
    assert (caught.value.kind, caught.value.is_retryable) == (ErrorKind.CONFIG, False)
