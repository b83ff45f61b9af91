"""Whether another model continues a turn whose own model cannot be reached.

The decision is stored with the retry, and then with the first answer of the fallback model: the
next owner of the chat continues with the same model, and so do the other steps of the turn.
"""

from collections.abc import Sequence

import msgspec

from chatd.chats.domain.chat import ChatState, Message
from chatd.content.domain.messages import ErrorKind
from chatd.content.domain.parts import Fallback
from chatd.models.domain.estimates import estimated_input_tokens
from chatd.models.domain.language_model import ModelError, ModelRequest
from chatd.models.domain.profile import ModelProfile
from chatd.turns.domain.retries import Failed

ATTEMPTS_FIRST = 2  # Attempts of the turn's own model, unless it is clear that it will not answer.
WAIT_MAX_S = 10.0  # A provider that asks for a longer wait is not waited for.
# The size of a prompt is an estimate, so a part of the window stays free.
WINDOW_PERCENT = 80

DOWN = frozenset(
    {
        ErrorKind.OVERLOADED,
        ErrorKind.TIMEOUT,
        ErrorKind.STARTUP_TIMEOUT,
        ErrorKind.STREAM_SILENCE_TIMEOUT,
        ErrorKind.RATE_LIMIT,
    }
)
# What concerns one model of a provider, and not its whole service.
OF_ONE_MODEL = frozenset({ErrorKind.OVERLOADED, ErrorKind.RATE_LIMIT})


def is_fallback_due(failed: Failed, model: ModelProfile, fallback: ModelProfile | None) -> bool:
    """Return whether the fallback model makes the next attempt.

    Errors that it would have too are not its matter: refused requests, filtered content, a history
    that is too long.
    """
    error = failed.error
    if fallback is None or not _is_of_provider(error):
        return False
    is_one_provider = bool(model.provider_id) and model.provider_id == fallback.provider_id
    if is_one_provider and (error.kind not in OF_ONE_MODEL or error.is_breaker_open):
        return False
    return (
        error.kind is ErrorKind.USAGE_LIMIT
        or error.is_breaker_open
        or (error.retry_after_s or 0.0) > WAIT_MAX_S
        or failed.attempt >= ATTEMPTS_FIRST
    )


def _is_of_provider(error: ModelError) -> bool:
    """Return whether a provider is down or over quota."""
    if error.kind is ErrorKind.USAGE_LIMIT:
        return True
    is_server_error = error.status_code >= 500
    return error.is_retryable and (error.kind in DOWN or is_server_error)


def lacking(fallback: ModelProfile, request: ModelRequest) -> str | None:
    """Return what a model lacks that a request needs; None if it can take it."""
    if request.tools and not fallback.takes_tools:
        return "it takes no tools"
    window_tokens = fallback.context_limit_tokens
    needed_tokens = estimated_input_tokens(request)
    if window_tokens and needed_tokens * 100 > window_tokens * WINDOW_PERCENT:
        return f"its window of {window_tokens} tokens is too small for about {needed_tokens}"
    return None


def is_taken_over(state: ChatState, history: Sequence[Message]) -> bool:
    """Return whether the fallback model continues the current turn."""
    if state.retry is not None and state.retry.fallback is not None:
        return True
    for message in reversed(history):
        if message.id <= state.turn_id:
            return False
        if any(isinstance(part, Fallback) for part in message.content):
            return True
    return False


def announced(state: ChatState, model: ModelProfile) -> Fallback | None:
    """Return the part that begins the first answer of the fallback model; None for all others."""
    if state.retry is None or state.retry.fallback is None or not model.is_fallback:
        return None
    return msgspec.structs.replace(state.retry.fallback, model_id=model.id)
