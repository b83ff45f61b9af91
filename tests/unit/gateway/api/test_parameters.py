"""Which fields of a request may stand in its query."""

import pytest
from google.protobuf.message_factory import GetMessageClass
from starlette.requests import Request

from gateway.api.contract import bindings
from gateway.api.parameters import TIMESTAMP, read_query_into
from gateway.api.transcoded_route import query_of
from gateway.http.problems.errors import HttpProblem
from parley.contract.bindings import HttpBinding


def binding_of(operation_id: str) -> HttpBinding:
    return next(each for each in bindings() if each.operation_id == operation_id)


def test_a_field_with_members_is_no_query_parameter() -> None:
    for binding in bindings():
        for name, parameter in query_of(binding).items():
            message = parameter.field.message_type
            is_map = message is not None and message.GetOptions().map_entry
            assert message is None or is_map or message.full_name == TIMESTAMP, (
                binding.operation_id,
                name,
            )


def test_a_field_with_members_is_refused_in_a_query_as_unknown() -> None:
    binding = binding_of("probeServer")
    request = Request({"type": "http", "query_string": b"draft=0", "headers": []})
    message = GetMessageClass(binding.method.input_type)()
    with pytest.raises(HttpProblem) as refused:
        read_query_into(message, request, query_of(binding))
    (error,) = refused.value.errors
    assert (refused.value.status, error.code, error.place, error.detail) == (
        422,
        "UNKNOWN_PARAMETER",
        "draft",
        "Unknown. Known: none.",
    )
