"""The problem that a refused call answers: its value, and its encoding in gRPC trailers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import (
    BadRequest,
    ErrorInfo,
    RetryInfo,
)
from google.rpc.status_pb2 import Status

from parley.contract.errors import error_spec
from parley.rpc.errors import RpcError
from parley.rpc.limits import LIMITS

DETAILS_KEY = "grpc-status-details-bin"
MESSAGE_TOO_LARGE = "MESSAGE_TOO_LARGE"
# The metadata key with the server's time, in Unix seconds, for a token that is not valid now.
TIME = "time"

_OVERSIZE = re.compile(r"message larger than max \((\d+) vs\. (\d+)\)")


@dataclass(frozen=True, slots=True)
class Violation:
    """One invalid field of a request.

    Attributes:
        field: Path of the field, as in the proto.
        description: What is wrong and what would be right.
    """

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a call was refused, for programs and for people.

    `of` makes one to answer with; the constructor is for decoding those that other processes sent.

    Attributes:
        status: The gRPC status.
        reason: A constant from the service's error reasons, for programs.
        message: Text without secrets that says what to do.
        metadata: Facts for programs, by name.
        retry_after_s: When a retry makes sense; None if that is unknown.
        violations: The invalid fields.
    """

    status: grpc.StatusCode
    reason: str
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    retry_after_s: float | None = None
    violations: tuple[Violation, ...] = ()

    @classmethod
    def of(
        cls,
        reason: str,
        message: str,
        metadata: Mapping[str, str] | None = None,
        *,
        retry_after_s: float | None = None,
        violations: tuple[Violation, ...] = (),
    ) -> "Problem":
        """Return a problem with the gRPC status that the protos declare for its reason.

        Raises:
            KeyError: No enum contains the reason.
            ValueError: No call is answered with the reason.
        """
        status = error_spec(reason).grpc_status
        if status is None:
            raise ValueError(f"{reason} declares no gRPC status")
        return cls(status, reason, message, metadata or {}, retry_after_s, violations)


class Refusal(RpcError):
    """Ends the call being served with a problem.

    Attributes:
        problem: The problem that is sent to the caller.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def trailers(problem: Problem, *, domain: str) -> tuple[tuple[str, bytes], ...]:
    """Return the problem as trailing metadata with an encoded `google.rpc.Status`."""
    status = Status(code=problem.status.value[0], message=message_of(problem))
    status.details.add().Pack(
        ErrorInfo(reason=problem.reason, domain=domain, metadata=problem.metadata)
    )
    if problem.violations:
        violations = problem.violations[: LIMITS.violations_max]
        status.details.add().Pack(
            BadRequest(
                field_violations=[
                    BadRequest.FieldViolation(field=each.field, description=each.description)
                    for each in violations
                ]
            )
        )
    if problem.retry_after_s is not None:
        delay = Duration()
        delay.FromMilliseconds(round(problem.retry_after_s * 1000))
        status.details.add().Pack(RetryInfo(retry_delay=delay))
    return ((DETAILS_KEY, status.SerializeToString()),)


def message_of(problem: Problem) -> str:
    """Return the problem's message, truncated to what fits in trailers."""
    return problem.message[: LIMITS.problem_text_max]


def refused_call(
    status: grpc.StatusCode, message: str, details: bytes = b""
) -> grpc.aio.AioRpcError:
    """Return the error of a call that was not made through grpc, from its answer."""
    trailing = grpc.aio.Metadata((DETAILS_KEY, details)) if details else grpc.aio.Metadata()
    return grpc.aio.AioRpcError(status, grpc.aio.Metadata(), trailing, details=message)


def problem_of(error: grpc.aio.AioRpcError) -> Problem:
    """Return the problem that a failed call answered.

    An answer of another server or of grpc itself has no details: its status becomes the reason.
    """
    status = _status_of(error)
    return _bare_problem(error) if status is None else _told_problem(error, status)


def _status_of(error: grpc.aio.AioRpcError) -> Status | None:
    trailing: Any = error.trailing_metadata() or ()
    for key, value in trailing:
        if key == DETAILS_KEY and isinstance(value, bytes):
            try:
                return Status.FromString(value)
            except DecodeError:
                return None
    return None


def _told_problem(error: grpc.aio.AioRpcError, status: Status) -> Problem:
    info, request, retry = ErrorInfo(), BadRequest(), RetryInfo()
    retry_after_s = None
    for detail in status.details:
        detail.Unpack(info)
        detail.Unpack(request)
        if detail.Unpack(retry):
            retry_after_s = retry.retry_delay.ToMilliseconds() / 1000
    return Problem(
        status=error.code(),
        reason=info.reason or error.code().name,
        message=status.message or error.details() or "",
        metadata=dict(info.metadata),
        retry_after_s=retry_after_s,
        violations=tuple(
            Violation(each.field, each.description) for each in request.field_violations
        ),
    )


def _bare_problem(error: grpc.aio.AioRpcError) -> Problem:
    details = error.details() or ""
    oversize = _OVERSIZE.search(details)
    if oversize is None:
        return Problem(error.code(), error.code().name, details)
    size, limit = oversize.groups()
    return Problem(
        status=error.code(),
        reason=MESSAGE_TOO_LARGE,
        message=f"the message has {size} bytes and {limit} are allowed; split it or stream it",
        metadata={"size_bytes": size, "limit_bytes": limit},
    )
