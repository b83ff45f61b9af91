"""Schemas of the arguments of tools that clients declare."""

import json
from typing import Any

import pytest

from chatd.chats.rpc.content import client_tools_from_proto
from chatd.chats.rpc.tool_schemas import schema_problems
from chatd.primitives.domain.errors import InvalidRequest
from gateway.http.problems.field_paths import RouteInputs, location_of
from parley.api.chat.v1 import chat_pb2
from support.gateway.bodies import body


def problems_of(schema: Any) -> dict[str, str]:
    return dict(schema_problems(json.dumps(schema)))


def test_every_fault_of_a_schema_is_told_with_its_place_and_the_choices() -> None:
    schema = {
        "type": "object",
        "properties": {
            "p": {"type": "strin"},
            "q/r": {"minLength": -1},
            "s": {"required": ["a", "a"]},
            "t": {"properties": []},
        },
    }
    assert problems_of(schema) == {
        "/properties/p/type": "is no type; give one of array, boolean, integer, null, number, "
        "object, string, or a list of them",
        "/properties/q~1r/minLength": "is less than 0",
        "/properties/s/required": "has the same item more than once",
        "/properties/t/properties": "is of the wrong type; give object",
    }


@pytest.mark.parametrize("reference", ["#/nope", "#/$defs/b", "#/required/x", "#anchor"])
def test_a_reference_that_leads_nowhere_in_its_schema_is_refused(reference: str) -> None:
    schema = {
        "properties": {"p": {"$ref": reference}},
        "$defs": {"a": {}},
        "required": ["p"],
    }
    assert problems_of(schema) == {"/properties/p/$ref": "leads to nothing in this schema"}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"p": {"$ref": "#"}, "q": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}},
        {"properties": {"p": {"$ref": "#a"}}, "$defs": {"x": {"$anchor": "a"}}},
        {"properties": {"p": {"const": {"$ref": "#/nope"}}, "$ref": {"type": "string"}}},
    ],
)
def test_references_that_lead_somewhere_pass(schema: Any) -> None:
    assert problems_of(schema) == {}


def test_a_fault_in_the_schema_of_a_client_tool_points_into_the_body() -> None:
    schema = json.dumps({"properties": {"p": {"type": "strin"}}})
    with pytest.raises(InvalidRequest) as refused:
        client_tools_from_proto([chat_pb2.ClientTool(name="t", input_schema_json=schema)])
    asked = RouteInputs(path="/chats", body=body("POST /chats").type)
    assert [location_of(field, asked).pointer for field, _ in refused.value.faults] == [
        "/client_tools/0/input_schema/properties/p/type"
    ]
