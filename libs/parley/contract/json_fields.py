"""The public JSON form of messages: which fields HTTP clients see and set, and how."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from google.api import field_behavior_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from parley.api.contract.v1 import options_pb2
from parley.contract.rules import Rules, rules_of

JSON_SUFFIX = "_json"


@dataclass(frozen=True, slots=True, eq=False)
class JsonField:
    """A public field.

    Attributes:
        descriptor: The field of the proto.
        name: Its name in JSON.
        options: Its JSON options.
        rules: The rules of its value.
        is_input: Whether clients may set it.
        is_output: Whether clients see it.
        is_required: Whether a request that creates has to contain it.
        is_immutable: Whether it cannot be changed afterwards.
    """

    descriptor: FieldDescriptor
    name: str
    options: options_pb2.JsonField
    rules: Rules
    is_input: bool
    is_output: bool
    is_required: bool
    is_immutable: bool

    @property
    def message(self) -> Descriptor:
        """The type of a field whose values are messages."""
        assert self.descriptor.message_type is not None
        return self.descriptor.message_type

    @property
    def is_map(self) -> bool:
        """Whether it is a map."""
        entry = self.descriptor.message_type
        return entry is not None and bool(entry.GetOptions().map_entry)


@cache
def json_fields(message: Descriptor) -> tuple[JsonField, ...]:
    """Return the public fields of a message, in the order of their declaration."""
    return tuple(found for field in message.fields if (found := json_field(field)) is not None)


def json_field(field: FieldDescriptor) -> JsonField | None:
    """Return the public form of a field; None if it is internal."""
    options = field.GetOptions().Extensions[options_pb2.json]
    if not options.public:
        return None
    behavior = frozenset(field.GetOptions().Extensions[field_behavior_pb2.field_behavior])
    own = field.name.removesuffix(JSON_SUFFIX) if options.embedded_json else field.name
    rules = rules_of(field)
    return JsonField(
        descriptor=field,
        name=options.name or own,
        options=options,
        rules=rules,
        is_input=field_behavior_pb2.OUTPUT_ONLY not in behavior,
        is_output=field_behavior_pb2.INPUT_ONLY not in behavior,
        is_required=rules.is_required or field_behavior_pb2.REQUIRED in behavior,
        is_immutable=field_behavior_pb2.IMMUTABLE in behavior,
    )


def is_tagged(message: Descriptor) -> bool:
    """Return whether the message is one of several kinds, with its kind as `type`."""
    return any(oneof.GetOptions().Extensions[options_pb2.tagged] for oneof in message.oneofs)


@cache
def enum_words(enum: EnumDescriptor) -> Mapping[int, str]:
    """Return the JSON word of each value of an enum: lower case, without the prefix."""
    zero = enum.values_by_number[0].name
    prefix = zero.removesuffix("UNSPECIFIED")
    return {
        value.number: value.name.removeprefix(prefix).lower()
        for value in enum.values
        if value.number != 0
    }
