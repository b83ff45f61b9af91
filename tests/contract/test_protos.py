import importlib
from pathlib import Path

import pytest
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

import parley.api
from support.rpc.undeclared_methods import undeclared_methods

GENERATED = Path(parley.api.__path__[0])

# Fenced by an execution id, an owner epoch or the ids of events, which take the place of a request
# id.
KEYED_OTHERWISE = frozenset({"CallTool", "GetCall", "GetExecution", "RecordAuditEvents"})


def file_descriptors() -> list[FileDescriptor]:
    names = sorted(
        ".".join(("parley.api", *path.relative_to(GENERATED).with_suffix("").parts))
        for path in GENERATED.rglob("*_pb2.py")
    )
    return [importlib.import_module(name).DESCRIPTOR for name in names]


def methods() -> list[MethodDescriptor]:
    return [
        method
        for file in file_descriptors()
        for service in file.services_by_name.values()
        for method in service.methods
    ]


def test_every_service_is_found() -> None:
    assert {method.containing_service.name for method in methods()} >= {
        "ChatService",
        "StreamService",
        "ProcessService",
        "McpRuntimeService",
        "ServiceTokenService",
    }


def test_every_method_declares_who_may_call_it() -> None:
    assert undeclared_methods(file_descriptors()) == ()


@pytest.mark.parametrize("method", methods(), ids=lambda method: method.full_name)
def test_every_method_says_whether_it_may_be_repeated(method: MethodDescriptor) -> None:
    level = method.GetOptions().idempotency_level
    has_two_streams = method.client_streaming and method.server_streaming
    assert has_two_streams or level != MethodOptions.IDEMPOTENCY_UNKNOWN


@pytest.mark.parametrize("method", methods(), ids=lambda method: method.full_name)
def test_every_mutation_has_a_key_that_makes_repeating_it_safe(method: MethodDescriptor) -> None:
    if method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS:
        return
    fields = set(method.input_type.fields_by_name)
    is_streamed_in = method.client_streaming
    assert is_streamed_in or method.name in KEYED_OTHERWISE or {"request_id", "key"} & fields
