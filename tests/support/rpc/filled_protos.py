"""Messages all of whose fields are set, to see what becomes of each."""

from typing import Any

from parley.api.contract.v1 import options_pb2


def filled(message: Any) -> Any:
    """Return a message all of whose fields are set, each list with one item.

    Messages of the same type inside it are left out.
    """
    oneofs = set()
    for field in message.DESCRIPTOR.fields:
        if field.message_type is message.DESCRIPTOR:
            continue
        if field.containing_oneof is not None and field.containing_oneof.name in oneofs:
            continue
        if field.containing_oneof is not None:
            oneofs.add(field.containing_oneof.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            getattr(message, field.name)["key"] = _value_of(value)
        elif field.message_type is message.DESCRIPTOR:
            getattr(message, field.name).add()
        elif field.message_type is not None and field.is_repeated:
            filled(getattr(message, field.name).add())
        elif field.message_type is not None:
            filled(getattr(message, field.name)).SetInParent()
        elif field.is_repeated:
            getattr(message, field.name).append(_value_of(field))
        else:
            setattr(message, field.name, _value_of(field))
    return message


def _value_of(field: Any) -> object:
    if field.name.endswith("_json"):
        return '{"product": "pens"}'
    if field.GetOptions().Extensions[options_pb2.json].decimal_max:
        return "1.5"
    return "x" if field.cpp_type == field.CPPTYPE_STRING else 1
