"""Options of the protos that only make sense together."""

from collections.abc import Iterator

from google.api import field_behavior_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from gateway.api.contract import FILES, access_table, bindings
from gateway.api.transcoded_route import body_type_of
from parley.api.contract.v1 import options_pb2
from parley.contract.json_fields import json_field, json_fields
from parley.contract.validation import violations_of


def messages_of(binding_messages: Iterator[Descriptor]) -> list[Descriptor]:
    """Return messages with all messages inside them."""
    found: dict[str, Descriptor] = {}
    todo = list(binding_messages)
    while todo:
        message = todo.pop()
        if message.full_name not in found:
            found[message.full_name] = message
            todo += [each.message_type for each in message.fields if each.message_type is not None]
    return list(found.values())


REQUESTS = messages_of(each.method.input_type for each in bindings())
RESPONSES = messages_of(each.method.output_type for each in bindings())


def test_every_binding_says_what_it_does() -> None:
    assert [each.path for each in bindings() if not each.options.summary.endswith(".")] == []


def test_every_variable_of_a_path_says_what_is_not_found() -> None:
    unnamed = [
        (binding.path, variable.name)
        for binding in bindings()
        for variable in binding.variables
        if (field := json_field(variable.fields[-1])) is None
        or not (field.options.resource or field.options.not_found_reason)
    ]
    assert not unnamed


def test_operations_have_names_of_their_own() -> None:
    names = [each.operation_id for each in bindings()]

    assert sorted(set(names)) == sorted(names)


def test_every_binding_has_its_access_rule() -> None:
    assert {(each.verb, each.path) for each in bindings()} <= set(access_table())


def test_every_body_can_be_built() -> None:
    for binding in bindings():
        if not binding.options.served_by_gateway:
            assert (body_type_of(binding) is not None) == bool(binding.body)


def is_optional(field: FieldDescriptor) -> bool:
    behavior = field.GetOptions().Extensions[field_behavior_pb2.field_behavior]
    declared = json_field(field)
    if declared is None:
        return False  # The gateway sets it, or a service that calls.
    names_a_resource = declared.options.not_found_reason or declared.options.resource
    return field_behavior_pb2.REQUIRED not in behavior and not names_a_resource


def test_a_field_that_may_be_left_out_may_be_zero() -> None:
    wrong = []
    for message in REQUESTS:
        if message.file.package.startswith("google.") or message.GetOptions().map_entry:
            continue
        empty = GetMessageClass(message)()
        at_fault = {each.field for each in violations_of(empty)}
        wrong += [
            field.full_name
            for field in message.fields
            if field.name in at_fault and is_optional(field)
        ]

    assert wrong == []


def test_json_names_of_a_message_are_unique() -> None:
    for message in RESPONSES:
        names = [field.name for field in json_fields(message) if not field.options.flatten]
        assert len(set(names)) == len(names), message.full_name


def test_options_of_json_are_only_on_public_fields() -> None:
    hidden = []
    for message in {each.full_name: each for each in (*REQUESTS, *RESPONSES)}.values():
        for field in message.fields:
            options = field.GetOptions().Extensions[options_pb2.json]
            if options.ByteSize() and not options.public:
                hidden.append(field.full_name)

    assert hidden == []


def test_every_service_with_a_binding_is_listed() -> None:
    services = {service.full_name for file in FILES for service in file.services_by_name.values()}

    assert {each.method.containing_service.full_name for each in bindings()} <= services
