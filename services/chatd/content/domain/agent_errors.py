"""Why an agent failed, as its parent reads it: kind, message, and what the parent can do."""

from collections.abc import Mapping
from typing import Final

from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.content.domain.sanitizing import sanitized

MESSAGE_CHARACTERS_MAX: Final = 1000
_AGAIN: Final = "Send it a message to let it go on"
_LATER: Final = f"{_AGAIN} after a while, or start an agent with another model."
_OTHER: Final = "Start an agent with another model, or do the work yourself."
_ADMINISTRATOR: Final = "Do the work yourself, and tell the user that an administrator is needed."

#: What the parent of an agent can do, by the kind of the error.
REMEDIES: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.GENERIC: f"{_AGAIN}, or do the work yourself.",
    ErrorKind.OVERLOADED: _LATER,
    ErrorKind.RATE_LIMIT: _LATER,
    ErrorKind.TIMEOUT: f"{_AGAIN}.",
    ErrorKind.STARTUP_TIMEOUT: f"{_AGAIN}, or start an agent with another model.",
    ErrorKind.STREAM_SILENCE_TIMEOUT: f"{_AGAIN}.",
    ErrorKind.AUTH: _OTHER,
    ErrorKind.CONFIG: _OTHER,
    ErrorKind.USAGE_LIMIT: "Start no more agents, and tell the user that a limit is reached.",
    ErrorKind.MISSING_KEY: _OTHER,
    ErrorKind.PROVIDER_DISABLED: _OTHER,
    ErrorKind.MODEL_UNAVAILABLE: _OTHER,
    ErrorKind.CONTENT_FILTER: "Send it the task in other words.",
    ErrorKind.CONTEXT_OVERFLOW: "Start agents with smaller tasks, or one with another model.",
    ErrorKind.CRASH_LOOP: "Do not send it the same again: split the task, or do it yourself.",
    ErrorKind.HOOK_DISPATCH_FAILED: _ADMINISTRATOR,
    ErrorKind.UNKNOWN: f"{_AGAIN}, or do the work yourself.",
}


def error_fields(error: TurnError) -> dict[str, object]:
    """Return the error of an agent as fields of a result; texts of providers are bounded."""
    fields: dict[str, object] = {
        "kind": error.kind.value,
        "message": _line(error.message),
        "remedy": REMEDIES[error.kind],
        "retryable": error.is_retryable,
    }
    if error.detail:
        fields["detail"] = _line(error.detail)
    return fields


def error_sentence(error: TurnError) -> str:
    """Return the error of an agent as one line of text."""
    return f"failed ({error.kind.value}): {_line(error.message)} {REMEDIES[error.kind]}"


def _line(text: str) -> str:
    return " ".join(sanitized(text).split())[:MESSAGE_CHARACTERS_MAX]
