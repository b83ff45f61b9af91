"""Serves a route that is one call: the request becomes a message, and the answer becomes JSON.

A route is compiled once from its binding. Path, query, headers and body are put into the request
message in this order; the answer is the response message, or the field that the binding names.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Protocol
from uuid import UUID, uuid5

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.json_input import Body, BodyKind, body_of
from gateway.api.json_output import converter_of
from gateway.api.parameters import (
    QueryParameter,
    path_value,
    query_parameters,
    read_query_into,
)
from gateway.api.user_names import NameOf, name_fields
from gateway.http.authentication import Principal
from gateway.http.preconditions import (
    changed_if,
    expected_version,
    hashed_response,
    if_match,
    refuse_condition,
    request_id_for,
    tagged,
    tagged_response,
    version_in,
)
from gateway.http.problems.errors import HttpProblem, invalid_request
from gateway.http.request_body import (
    idempotency_key,
    read_json,
    read_optional_json,
    read_patch,
)
from gateway.http.responses import json_response
from parley.contract.bindings import WHOLE_BODY, HttpBinding, field_path
from parley.identity import User, UserId

REQUEST_ID: Final = "request_id"
UPDATE_MASK: Final = "update_mask"
CHAT_ID: Final = "chat_id"
NO_CONTENT: Final = 204
READING: Final = frozenset({"GET", "HEAD"})

_FIELD = re.compile(r"\{([a-z_.]+)\}")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a method.

    Attributes:
        method: The method, as "/pkg.Service/Method".
        request: The request message.
        user: The user on whose behalf it is called.
        routing_key: The chat or user that it concerns.
        timeout_s: Its deadline; None for the default.
    """

    method: str
    request: Any
    user: User
    routing_key: str
    timeout_s: float | None


class Calls(Protocol):
    """Calls methods of services."""

    async def __call__(self, call: Call) -> Any:
        """Return the response message.

        Raises:
            UpstreamProblem: The response is an error, or no process responds.
        """
        ...


class TranscodedRoute:
    """The handler of one binding."""

    def __init__(
        self, binding: HttpBinding, calls: Calls, *, new_id: Callable[[], str], name_of: NameOf
    ) -> None:
        """Compile the binding."""
        self._binding = binding
        self._calls = calls
        self._new_id = new_id
        self._name_of = name_of
        options, message = binding.options, binding.method.input_type
        self._request_type = GetMessageClass(message)
        self._constants = tuple(
            (field_path(message, each.field), each.value) for each in options.constants
        )
        self.body = body_type_of(binding)
        self.query = query_of(binding)
        self._convert = converter_of(_answer_type(binding))
        self._names = name_fields(_answer_type(binding))
        self._answer = attrgetter(binding.response_body) if binding.response_body else _itself
        self._etag = attrgetter(options.etag_field) if options.etag_field else None
        self._replayed = attrgetter(options.replayed_field) if options.replayed_field else None
        self._has_request_id = REQUEST_ID in message.fields_by_name
        self._if_match = _optional_path(message, options.if_match_field)
        self._caller = _optional_path(message, options.caller_field)
        self._credential = _optional_path(message, options.credential_field)
        self._session = _optional_path(message, options.session_field)
        self._timeout_s = options.timeout_ms / 1000 or None

    async def __call__(self, request: Request, principal: Principal) -> Response:
        """Answer one request."""
        message = self._request_type()
        try:
            read_query_into(message, request, self.query)
        except HttpProblem as problem:
            raise await self._with_errors_of_body(problem, request) from None
        routing_key = self._identify(message, request, principal)
        tags = self._condition(request)
        await self._read_body(message, request)
        call = Call(self._binding.call_path, message, principal.user, routing_key, self._timeout_s)

        request_id = getattr(message, REQUEST_ID, "")

        async def change(tag: str) -> Any:
            if tag:
                put(message, self._if_match, self._version_of(tag))
            if tag and self._has_request_id:
                setattr(message, REQUEST_ID, request_id_for(tag, tags, request_id))
            return await self._calls(call)

        return self._respond(request, await changed_if(tags, change))

    def _identify(self, message: Message, request: Request, principal: Principal) -> str:
        """Set what path, binding and caller say, and return the routing key."""
        options = self._binding.options
        routing_key: str = principal.user.id
        for variable in self._binding.variables:
            value = path_value(variable, request.path_params[variable.name])
            put(message, variable.fields, value)
            if variable.name == CHAT_ID:
                routing_key = value
        for fields, text in self._constants:
            put(message, fields, _constant(fields[-1], text))
        if options.caller_field:
            put(message, self._caller, principal.user.id)
        if options.credential_field:
            put(message, self._credential, principal.credential.value)
        if options.session_field:
            put(message, self._session, principal.session_id)
        key = ""
        if self._has_request_id:
            key = idempotency_key(request) or self._new_id()
            setattr(message, REQUEST_ID, key)
        if options.derived_id_field:
            routing_key = derived_id(principal.user.id, key)
            setattr(message, options.derived_id_field, routing_key)
        return routing_key

    def _condition(self, request: Request) -> tuple[str, ...]:
        """Return the tags of If-Match."""
        if request.method in READING:
            return ()
        if not self._if_match:
            refuse_condition(request)
            return ()
        tags = if_match(request)
        if self._binding.options.etag_of_content:
            return tuple(dict.fromkeys(map(version_in, tags)))
        return tags

    def _version_of(self, tag: str) -> str | int:
        is_number = self._if_match[-1].cpp_type == FieldDescriptor.CPPTYPE_INT64
        return expected_version(tag) if is_number else tag

    async def _read_body(self, message: Any, request: Request) -> None:
        if self.body is None:
            return
        target = message
        if self._binding.body != WHOLE_BODY:
            target = getattr(message, self._binding.body)
        if self._binding.verb == "PATCH" and UPDATE_MASK in message.DESCRIPTOR.fields_by_name:
            patch = await read_patch(request, self.body.type)
            message.update_mask.paths.extend(self.body.fill(target, patch))
            return
        read = read_optional_json if self._binding.options.body_optional else read_json
        self.body.fill(target, await read(request, self.body.type))

    async def _with_errors_of_body(self, problem: HttpProblem, request: Request) -> HttpProblem:
        """Return the errors of a query together with those that the body has, too."""
        try:
            await self._read_body(self._request_type(), request)
        except HttpProblem as of_body:
            if of_body.code == problem.code:
                return invalid_request(*problem.errors, *of_body.errors)
        return problem

    def _respond(self, request: Request, response: Any) -> Response:
        options = self._binding.options
        status = options.status or 200
        if status == NO_CONTENT:
            return Response(status_code=status)
        answer = self._answer(response)
        self._names.fill(answer, self._name_of)
        document = self._convert(answer) or {}
        etag = "" if self._etag is None else str(self._etag(response))
        if request.method in READING:
            if options.etag_of_content:
                return hashed_response(request, document, version=etag)
            return tagged_response(request, document, etag)
        headers = dict(tagged(etag))
        if options.location:
            headers["location"] = _filled(options.location, response)
        if self._replayed is not None and self._replayed(response):
            headers["idempotency-replayed"] = "true"
        return json_response(document, status=status, headers=headers)


def derived_id(user_id: UserId, key: str) -> str:
    """Return the id of what a user creates with an idempotency key, the same on every gateway."""
    return str(uuid5(UUID(user_id), key))


def put(message: Any, fields: tuple[FieldDescriptor, ...], value: Any) -> None:
    """Set the field at the end of a path, or add to it if it is repeated."""
    for field in fields[:-1]:
        message = getattr(message, field.name)
    if fields[-1].is_repeated:
        getattr(message, fields[-1].name).append(value)
    else:
        setattr(message, fields[-1].name, value)


def body_type_of(binding: HttpBinding) -> Body | None:
    """Return the body of a binding; None if it has none."""
    if not binding.body:
        return None
    message: Descriptor | None = binding.method.input_type
    if binding.body != WHOLE_BODY:
        message = field_path(binding.method.input_type, binding.body)[-1].message_type
    assert message is not None
    is_patch = binding.verb == "PATCH" and UPDATE_MASK in binding.method.input_type.fields_by_name
    taken = frozenset(variable.fields[-1].name for variable in binding.variables)
    return body_of(
        message,
        BodyKind.PATCH if is_patch else BodyKind.CREATE,
        name=f"{binding.operation_id[:1].upper()}{binding.operation_id[1:]}Body",
        only=frozenset(binding.options.body_fields),
        without=taken,
    )


def query_of(binding: HttpBinding) -> Mapping[str, QueryParameter]:
    """Return the query parameters of a binding."""
    if binding.body == WHOLE_BODY:
        return {}
    taken = {variable.fields[0].name for variable in binding.variables}
    taken |= {each.field.partition(".")[0] for each in binding.options.constants}
    taken |= {binding.body, binding.options.caller_field}
    return query_parameters(binding.method.input_type, frozenset(taken))


def _answer_type(binding: HttpBinding) -> Any:
    message = binding.method.output_type
    if not binding.response_body:
        return message
    return field_path(message, binding.response_body)[-1].message_type


def _optional_path(message: Descriptor, path: str) -> tuple[FieldDescriptor, ...]:
    return field_path(message, path) if path else ()


def _itself(response: Any) -> Any:
    return response


def _constant(field: FieldDescriptor, text: str) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values_by_name[text].number
    if field.type == FieldDescriptor.TYPE_BOOL:
        return text == "true"
    return text if field.type == FieldDescriptor.TYPE_STRING else int(text)


def _filled(template: str, response: Any) -> str:
    return _FIELD.sub(lambda found: str(attrgetter(found[1])(response)), template)
