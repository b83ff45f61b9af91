"""The HTTP bindings of methods, read from google.api.http and the project's own options."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from google.api import annotations_pb2, http_pb2
from google.protobuf.descriptor import (
    Descriptor,
    FieldDescriptor,
    MethodDescriptor,
    ServiceDescriptor,
)

from parley.api.contract.v1 import options_pb2
from parley.contract.json_fields import json_field

WHOLE_BODY = "*"
_VARIABLE = re.compile(r"\{([a-z_.]+)\}")


class BindingInvalid(Exception):
    """A binding that its messages cannot satisfy.

    Attributes:
        method: The method, as "pkg.Service.Method".
        problem: What is wrong.
    """

    def __init__(self, method: str, problem: str) -> None:
        super().__init__(f"{method}: {problem}")
        self.method = method
        self.problem = problem


@dataclass(frozen=True, slots=True)
class PathVariable:
    """A variable of a path.

    Attributes:
        name: Its public name.
        fields: The path of the request field that it sets, outermost first.
    """

    name: str
    fields: tuple[FieldDescriptor, ...]


@dataclass(frozen=True, slots=True)
class HttpBinding:
    """One route of a method.

    Attributes:
        method: The method.
        verb: The HTTP method.
        path: The path, with the public names of its variables in braces.
        variables: The variables of the path.
        body: The request field that the body is, "*" for the request itself, empty for no body.
        response_body: The response field that the answer is; empty for the response itself.
        options: What google.api.http does not say.
    """

    method: MethodDescriptor
    verb: str
    path: str
    variables: tuple[PathVariable, ...]
    body: str
    response_body: str
    options: options_pb2.Binding

    @property
    def operation_id(self) -> str:
        """The name of the operation, in lowerCamelCase."""
        name = self.method.name
        return self.options.operation_id or f"{name[:1].lower()}{name[1:]}"

    @property
    def call_path(self) -> str:
        """The method, as "/pkg.Service/Method"."""
        return f"/{self.method.containing_service.full_name}/{self.method.name}"


def bindings_of(services: Iterable[ServiceDescriptor]) -> tuple[HttpBinding, ...]:
    """Return the routes of services, in the order of their declaration.

    Raises:
        BindingInvalid: A binding names a field that does not exist, or lacks its options.
    """
    return tuple(
        binding
        for service in services
        for method in service.methods
        for binding in _bindings(method)
    )


def field_path(message: Descriptor, path: str) -> tuple[FieldDescriptor, ...]:
    """Return the fields along a dotted path, outermost first.

    Raises:
        KeyError: There is no such field.
    """
    found: list[FieldDescriptor] = []
    inside: Descriptor | None = message
    for name in path.split("."):
        if inside is None:
            raise KeyError(path)
        field = inside.fields_by_name[name]
        found.append(field)
        inside = field.message_type
    return tuple(found)


def _bindings(method: MethodDescriptor) -> Iterator[HttpBinding]:
    rule = method.GetOptions().Extensions[annotations_pb2.http]
    declared = method.GetOptions().Extensions[options_pb2.http].bindings
    if rule.WhichOneof("pattern") is None:
        return
    rules = (rule, *rule.additional_bindings)
    if len(rules) != len(declared):
        raise BindingInvalid(method.full_name, "needs one option for each binding")
    for each, options in zip(rules, declared, strict=True):
        try:
            yield _binding(method, each, options)
        except KeyError as missing:
            raise BindingInvalid(method.full_name, f"there is no field {missing}") from None


def _binding(
    method: MethodDescriptor, rule: http_pb2.HttpRule, options: options_pb2.Binding
) -> HttpBinding:
    verb = rule.WhichOneof("pattern")
    template: str = getattr(rule, verb)
    variables = tuple(
        _variable(method.input_type, found[1]) for found in _VARIABLE.finditer(template)
    )
    names = iter(variables)
    return HttpBinding(
        method=method,
        verb=verb.upper(),
        path=_VARIABLE.sub(lambda _: f"{{{next(names).name}}}", template),
        variables=variables,
        body=rule.body,
        response_body=rule.response_body,
        options=options,
    )


def _variable(message: Descriptor, path: str) -> PathVariable:
    fields = field_path(message, path)
    last = fields[-1]
    if len(fields) == 1:
        declared = json_field(last)
        return PathVariable(last.name if declared is None else declared.name, fields)
    name = f"{fields[-2].name}_id" if last.name == "id" else last.name
    return PathVariable(name, fields)
