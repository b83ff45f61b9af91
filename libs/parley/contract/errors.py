"""The error table: what each error reason is answered with, as the protos declare it.

Reasons are known by their name without the prefix of their enum: `CHAT_NOT_FOUND`. A reason that
several enums contain is declared equally in all of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import grpc
from google.protobuf.descriptor import EnumDescriptor

from parley.api.chat.v1.error_reason_pb2 import ErrorReason as ChatReason
from parley.api.error.v1 import options_pb2
from parley.api.error.v1.field_error_code_pb2 import FieldErrorCode
from parley.api.error.v1.http_error_reason_pb2 import HttpErrorReason
from parley.api.error.v1.rpc_error_reason_pb2 import RpcErrorReason
from parley.api.identity.v1.error_reason_pb2 import ErrorReason as IdentityReason
from parley.api.mcp.v1.error_reason_pb2 import ErrorReason as McpReason
from parley.api.workspace.v1.error_reason_pb2 import ErrorReason as WorkspaceReason


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """The declaration of one error reason.

    Attributes:
        reason: Its name, in upper case.
        grpc_status: The gRPC status; None if no call is answered with it.
        http_status: The HTTP status; 0 if no request is answered with it.
        if_match_http_status: The HTTP status if the request had If-Match.
        is_retryable: Whether the same request may succeed later.
        meaning: What happened.
        remedy: What to do about it.
        public_metadata: Names of the metadata that HTTP clients get.
        has_generic_text: Whether HTTP clients get `text` in place of the error's own text.
        body_field: Path of the body field that may have named the missing resource; may be empty.
        text: The text for HTTP clients of an error without a text for them.
        command: The `parley` command that helps; empty for none.
    """

    reason: str
    grpc_status: grpc.StatusCode | None
    http_status: int
    if_match_http_status: int
    is_retryable: bool
    meaning: str
    remedy: str
    public_metadata: tuple[str, ...]
    has_generic_text: bool
    body_field: str
    text: str
    command: str = ""


_GRPC_STATUSES: Final[Mapping[int, grpc.StatusCode]] = {
    status.value[0]: status for status in grpc.StatusCode if status is not grpc.StatusCode.OK
}


def specs_of(reasons: EnumDescriptor) -> Iterator[ErrorSpec]:
    """Yield the declarations of an enum of error reasons."""
    for name, declared in _declared(reasons):
        yield ErrorSpec(
            reason=name,
            grpc_status=_GRPC_STATUSES.get(declared.grpc_status),
            http_status=declared.http_status,
            if_match_http_status=declared.if_match_http_status or declared.http_status,
            is_retryable=declared.retryable,
            meaning=declared.meaning,
            remedy=declared.remedy,
            public_metadata=tuple(declared.public_metadata),
            has_generic_text=declared.generic_text,
            body_field=declared.body_field,
            text=declared.detail or f"{declared.meaning} {declared.remedy}",
            command=declared.command,
        )


def _declared(values: EnumDescriptor) -> Iterator[tuple[str, options_pb2.Error]]:
    """Yield the names, without the prefix of the enum, and the options of its values."""
    prefix = values.values_by_number[0].name.removesuffix("UNSPECIFIED")
    for value in values.values:
        if value.number:
            yield value.name.removeprefix(prefix), value.GetOptions().Extensions[options_pb2.error]


#: All enums of error reasons.
ENUMS: Final[tuple[EnumDescriptor, ...]] = (
    HttpErrorReason.DESCRIPTOR,
    RpcErrorReason.DESCRIPTOR,
    IdentityReason.DESCRIPTOR,
    ChatReason.DESCRIPTOR,
    WorkspaceReason.DESCRIPTOR,
    McpReason.DESCRIPTOR,
)
#: Reason -> its declaration.
ERROR_SPECS: Final[Mapping[str, ErrorSpec]] = {
    spec.reason: spec for reasons in ENUMS for spec in specs_of(reasons)
}
#: Code of a field error -> its meaning.
FIELD_CODES: Final[Mapping[str, str]] = {
    name: declared.meaning for name, declared in _declared(FieldErrorCode.DESCRIPTOR)
}


def error_spec(reason: str) -> ErrorSpec:
    """Return the declaration of a reason that is known here.

    Raises:
        KeyError: No enum contains the reason.
    """
    return ERROR_SPECS[reason]


def received_spec(reason: str, status: grpc.StatusCode) -> ErrorSpec:
    """Return the declaration of a received reason; that of the status if it is unknown here."""
    spec = ERROR_SPECS.get(reason)
    if spec is not None and spec.grpc_status is not None:
        return spec
    return replace(ERROR_SPECS[status.name], reason=reason, has_generic_text=False)
