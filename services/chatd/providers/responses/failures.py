"""Errors that a stream reports, for the classifier."""

import msgspec

from chatd.providers.responses.events import Anything, Error, Response
from chatd.providers.wire import Failure, ProviderFailed

BODY_BYTES_MAX = 4096

_errors = msgspec.json.Decoder(Error)


def unreadable(data: bytes, problem: str) -> ProviderFailed:
    """Return the failure of an event that cannot be decoded."""
    text = f"the stream holds an event that cannot be read: {problem}"
    return ProviderFailed(Failure(text, body=_start(data), is_garbled=True))


def cut_off() -> ProviderFailed:
    """Return the failure of a stream that ended before its last event."""
    return ProviderFailed(
        Failure("responses stream closed before its terminal event", is_cut_off=True)
    )


def failed_response(response: Response) -> ProviderFailed:
    """Return the failure of a failed response."""
    if response.error is not None:
        return _failure_of(response.error)
    return ProviderFailed(Failure(f"the answer ended as {response.status or 'failed'}"))


def reported_error(event: Anything) -> ProviderFailed:
    """Return the failure that an error event reports, flat or with a nested error."""
    if not event.has_error:
        return _failure_of(Error(code=event.code, message=event.message, status=event.status))
    try:
        return _failure_of(_errors.decode(event.error))
    except msgspec.DecodeError:
        text = bytes(event.error).decode(errors="replace")
        return _failure_of(Error(code=event.code, message=text, status=event.status))


def _failure_of(error: Error) -> ProviderFailed:
    words = (error.code or error.type or "", error.message or "the provider reported an error")
    text = ": ".join(str(word) for word in words if word)
    named = {"code": error.code, "type": error.type, "message": error.message}
    body = msgspec.json.encode({"error": {name: each for name, each in named.items() if each}})
    return ProviderFailed(Failure(text, status_code=_status(error), body=_start(body)))


def _status(error: Error) -> int:
    """Return the status of an error; some endpoints put it into the code."""
    for status in (error.status_code, error.status, error.code):
        if str(status).isdecimal() and 400 <= int(str(status)) <= 599:
            return int(str(status))
    return 0


def _start(data: bytes) -> bytes:
    return data[:BODY_BYTES_MAX]
