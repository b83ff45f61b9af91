"""What went wrong with a call over HTTP, as far as the connection can tell."""

import asyncio
import os
import ssl
from dataclasses import replace

import aiohttp

from chatd.providers.failure_detail import BODY_BYTES_MAX, told_by
from chatd.providers.wire import Failure
from parley.settings import Secret
from parley.telemetry import Redactor

# A provider that has failed already is not waited for much longer.
ERROR_BODY_S = 5.0


async def failure_of_answer(response: aiohttp.ClientResponse) -> Failure:
    """Return the failure that an answer with an error status is."""
    status_code, reason = response.status, response.reason or ""
    body = await _beginning(response)
    headers = {name.lower(): value for name, value in response.headers.items()}
    text = f"status {status_code} {reason}".rstrip()
    if 300 <= status_code < 400:
        text = f"{text}: malformed configuration, the address of the provider leads elsewhere"
    return Failure(text, status_code, headers, body)


async def failure_of_document(response: aiohttp.ClientResponse, beginning: bytes) -> Failure:
    """Return the failure that a good status with a whole document instead of events is."""
    body = await _beginning(response, beginning)
    headers = {name.lower(): value for name, value in response.headers.items()}
    failure = Failure("the answer is an error", 0, headers, body)
    if _is_error(failure):
        return failure
    text = (
        "malformed configuration, the address of the provider answers with a document of type "
        f"{headers.get('content-type') or 'unknown'} instead of a stream"
    )
    return Failure(text, headers=headers)


def failure_of_error(error: Exception, *, is_begun: bool = False) -> Failure:
    """Return the failure that an error of the connection is; `is_begun` says that it once stood."""
    told = _told(error)
    match error:
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Failure("malformed configuration, the address of the provider is no HTTP URL")
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLCertVerificationError():
            return Failure(f"certificate verify failed: {told}", is_transport=True)
        case aiohttp.ClientError() | OSError():
            return Failure(told, is_transport=True, is_cut_off=is_begun)
        case _:
            return Failure(f"malformed configuration: {told}")


def _told(error: Exception) -> str:
    """Return an error's words; those about a connection without its port, which is no status."""
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        why = os.strerror(cause.errno) if cause.errno else type(cause).__name__
        return f"cannot connect to {error.host}: {why}"
    return str(error) or type(error).__name__


def without_key(failure: Failure, api_key: Secret) -> Failure:
    """Return a failure whose words do not hold the key that the call was made with."""
    redactor = Redactor()
    redactor.register(api_key.reveal())
    for part in api_key.reveal().split(":"):
        redactor.register(part)
    body = redactor.clean(failure.body.decode(errors="replace")).encode()
    return replace(failure, text=redactor.clean(failure.text), body=body)


def _is_error(failure: Failure) -> bool:
    """Return whether a document speaks of an error; an answer in one piece does not."""
    return b'"error"' in failure.body and bool(told_by(failure).message)


async def _beginning(response: aiohttp.ClientResponse, beginning: bytes = b"") -> bytes:
    """Return the first bytes of a body, one more than may be read if there are more."""
    body = bytearray(beginning)
    try:
        async with asyncio.timeout(ERROR_BODY_S):
            while len(body) <= BODY_BYTES_MAX:
                chunk = await response.content.readany()
                if not chunk:
                    break
                body += chunk
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass  # What came until then is all there is.
    return bytes(body[: BODY_BYTES_MAX + 1])
