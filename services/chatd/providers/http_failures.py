"""Converts failures of HTTP calls into `Failure`."""

import asyncio
import ssl
from dataclasses import replace

from chatd.providers.failure_detail import BODY_BYTES_MAX, error_body_of
from chatd.providers.wire import Failure
from parley.http import (
    AddressInvalid,
    AnswerMalformed,
    HeaderInvalid,
    HttpError,
    Response,
)
from parley.settings import Secret
from parley.telemetry import Redactor

# The rest of an error response is not waited for much longer.
ERROR_BODY_S = 5.0


async def failure_of_answer(response: Response) -> Failure:
    """Return the failure of a response with an error status."""
    status_code, reason = response.status, response.reason
    body = await _beginning(response)
    text = f"status {status_code} {reason}".rstrip()
    if 300 <= status_code < 400:
        text = f"{text}: malformed configuration, the address of the provider leads elsewhere"
    return Failure(text, status_code, response.headers, body)


async def failure_of_document(response: Response, beginning: bytes) -> Failure:
    """Return the failure of a successful response with a document instead of events."""
    body = await _beginning(response, beginning)
    failure = Failure("the answer is an error", 0, response.headers, body)
    if _is_error(failure):
        return failure
    text = (
        "malformed configuration, the address of the provider answers with a document of type "
        f"{response.headers.get('content-type') or 'unknown'} instead of a stream"
    )
    return Failure(text, headers=response.headers)


def failure_of_error(error: HttpError | OSError, *, is_begun: bool = False) -> Failure:
    """Return the failure of a connection error; `is_begun` means that it was established."""
    problem = str(error) or type(error).__name__
    match error:
        case AddressInvalid() | HeaderInvalid():
            return Failure(f"malformed configuration: {problem}")
        case ssl.SSLCertVerificationError():
            return Failure(f"certificate verify failed: {problem}", is_transport=True)
        case AnswerMalformed() if is_begun:
            return Failure(f"the stream cannot be read: {problem}", is_garbled=True)
        case _:
            return Failure(
                problem, is_transport=True, is_cut_off=is_begun, is_unreachable=not is_begun
            )


def without_key(failure: Failure, api_key: Secret) -> Failure:
    """Return a failure whose texts do not contain the key of the call."""
    redactor = Redactor()
    redactor.register(api_key.reveal())
    for part in api_key.reveal().split(":"):
        redactor.register(part)
    body = redactor.clean(failure.body.decode(errors="replace")).encode()
    return replace(failure, text=redactor.clean(failure.text), body=body)


def _is_error(failure: Failure) -> bool:
    """Return whether a document reports an error; an answer in one piece does not."""
    return b'"error"' in failure.body and bool(error_body_of(failure).message)


async def _beginning(response: Response, beginning: bytes = b"") -> bytes:
    """Return the first bytes of a body, one more than the limit if there are more."""
    body = bytearray(beginning)

    def on_bytes(piece: bytes) -> bool:
        body.extend(piece)
        return len(body) > BODY_BYTES_MAX

    try:
        async with asyncio.timeout(ERROR_BODY_S):
            await response.stream_to(on_bytes)
    except (TimeoutError, HttpError, OSError):
        pass  # The bytes received until then are used.
    return bytes(body[: BODY_BYTES_MAX + 1])
