"""What a person does after a turn failed, by the kind of the error."""

from collections.abc import Mapping
from typing import Final

from chatd.content.domain.messages import ErrorKind, TurnError

#: While another attempt is being waited for.
WAIT: Final = "Wait: it is tried again by itself. Stop the turn to choose another model."
SEND_AGAIN: Final = "Send the message again."
LATER: Final = "Send the message again later, or choose another model."
CHOOSE_MODEL: Final = "Choose another model, or ask an administrator to configure this one."
CHECK_KEY: Final = "Check the key of the provider, or choose another model."

NEXT_STEPS: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.GENERIC: SEND_AGAIN,
    ErrorKind.OVERLOADED: LATER,
    ErrorKind.RATE_LIMIT: LATER,
    ErrorKind.TIMEOUT: LATER,
    ErrorKind.STARTUP_TIMEOUT: LATER,
    ErrorKind.STREAM_SILENCE_TIMEOUT: LATER,
    ErrorKind.AUTH: CHECK_KEY,
    ErrorKind.MISSING_KEY: "Add a key for the provider, or choose another model.",
    ErrorKind.CONFIG: CHOOSE_MODEL,
    ErrorKind.PROVIDER_DISABLED: CHOOSE_MODEL,
    ErrorKind.MODEL_UNAVAILABLE: CHOOSE_MODEL,
    ErrorKind.USAGE_LIMIT: "Wait for the end of the period, or ask an administrator for more.",
    ErrorKind.CONTENT_FILTER: "Change the message, or choose another model.",
    ErrorKind.CONTEXT_OVERFLOW: "Begin a new chat, or choose a model with a larger context window.",
    ErrorKind.CRASH_LOOP: SEND_AGAIN,
    ErrorKind.HOOK_DISPATCH_FAILED: "Ask an administrator to check the hook.",
    ErrorKind.UNKNOWN: SEND_AGAIN,
}


def next_step_of(error: TurnError) -> str:
    """Return what to do after a turn ended with this error."""
    return NEXT_STEPS[error.kind]
