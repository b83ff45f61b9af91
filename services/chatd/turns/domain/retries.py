"""Whether a failed model call is tried again, and when."""

from dataclasses import dataclass, replace
from datetime import datetime

from chatd.chats.domain.chat import ChatState, Retry
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.models.domain.language_model import ModelError
from chatd.turns.domain.compaction import COMPACTIONS_MAX


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of the retries of a turn's model calls.

    Attributes:
        attempts_max: How often one history is tried; calls that are held back do not count.
        backoff_first_s: The wait after the first failure; it doubles with each one.
        backoff_max_s: The longest such wait, without jitter.
        unreachable_max_s: How long attempts continue that receive no byte of an answer.
        hint_max_s: The longest Retry-After of a provider that is accepted.
        held_back_max_s: How long the call of one attempt is held back.
    """

    attempts_max: int = 25
    backoff_first_s: float = 1.0
    backoff_max_s: float = 60.0
    unreachable_max_s: float = 180.0
    hint_max_s: float = 600.0
    held_back_max_s: float = 3600.0
    # All chats of a provider receive the same Retry-After; the jitter spreads their retries.
    hint_share_s: float = 0.2
    hint_spread_max_s: float = 60.0


@dataclass(frozen=True, slots=True)
class RetryIn:
    """Try again after a while."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End the turn."""

    error: TurnError


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt that failed, or whose call was held back.

    Attributes:
        error: The failure.
        attempt: The number of the attempt at this history.
        chats_running: How many chats run in this process.
        unreachable_s: For how long attempts have failed without a byte of an answer.
        held_back_s: For how long the call of this attempt has been held back.
    """

    error: ModelError
    attempt: int
    chats_running: int = 1
    unreachable_s: float = 0.0
    held_back_s: float = 0.0


def after_failure(failed: Failed, jitter: float, policy: RetryPolicy) -> RetryIn | GiveUp:
    """Decide what follows a failed attempt; `jitter` is between 0 and 1.

    The provider's hint is a lower bound. Jitter is added, so that chats that failed together do not
    retry together; it grows with the number of chats. An unreachable provider is tried for a
    limited time only, and at the end of it for the last time.
    """
    error, attempt = failed.error, failed.attempt
    if error.is_breaker_open:
        is_over = failed.held_back_s >= policy.held_back_max_s
    else:
        is_over = attempt >= policy.attempts_max
    if is_over or not error.is_retryable:
        return GiveUp(_final(error))
    hint_s = error.retry_after_s or 0.0
    if hint_s > policy.hint_max_s:
        return GiveUp(_asked_to_wait(error, hint_s))
    doublings = min(attempt - 1, 30)
    backoff_s = min(policy.backoff_first_s * 2**doublings, policy.backoff_max_s)
    crowd_s = min(failed.chats_running * policy.hint_share_s, policy.hint_spread_max_s)
    jitter_s = max(backoff_s, crowd_s) if hint_s else backoff_s
    delay_s = max(backoff_s, hint_s) + jitter * jitter_s
    if not error.is_unreachable:
        return RetryIn(delay_s)
    left_s = policy.unreachable_max_s - failed.unreachable_s
    return RetryIn(min(delay_s, left_s)) if left_s > 0 else GiveUp(_unreachable(error, policy))


def after_failed_step(failed: Failed, jitter: float, policy: RetryPolicy) -> RetryIn | GiveUp:
    """Decide what follows a failed step; a history that was too long is summarised at once."""
    is_too_long = failed.error.kind is ErrorKind.CONTEXT_OVERFLOW
    if is_too_long and failed.attempt <= COMPACTIONS_MAX:
        return RetryIn(0.0)
    return after_failure(failed, jitter, policy)


def spent(state: ChatState, policy: RetryPolicy) -> TurnError | None:
    """Return why no further attempt may begin; None if one may."""
    if state.generation_attempt <= policy.attempts_max:
        return None
    if state.retry is not None:
        return state.retry.error
    return TurnError(
        "The turn was stopped because none of its attempts came to an end.",
        ErrorKind.CRASH_LOOP,
        detail=f"{policy.attempts_max} attempts; send a message to try again",
    )


def _final(error: ModelError) -> TurnError:
    """Return the final error of a turn; an open circuit breaker alone is not the reason."""
    if not error.is_breaker_open:
        return error.turn_error
    provider = error.provider or "The AI provider"
    told = (
        f"{provider} could not be reached. Check its address and that it runs, then send the "
        "message again."
        if error.is_unreachable
        else f"Too many calls to {error.provider or 'the AI provider'} failed. Wait a while, then "
        "send the message again."
    )
    return replace(error.turn_error, message=told)


def _unreachable(error: ModelError, policy: RetryPolicy) -> TurnError:
    return TurnError(
        f"{error.provider or 'The AI provider'} could not be reached for "
        f"{_duration(policy.unreachable_max_s)}. "
        "Check its address and that it runs, then send the message again.",
        error.kind,
        detail=error.detail,
        provider=error.provider,
        status_code=error.status_code,
        is_retryable=True,
    )


def _duration(seconds: float) -> str:
    """Return a duration as text: whole seconds below two minutes."""
    if seconds >= 120:
        return f"{seconds / 60:.2g} minutes"
    whole = max(1, round(seconds))
    return "1 second" if whole == 1 else f"{whole} seconds"


def _asked_to_wait(error: ModelError, hint_s: float) -> TurnError:
    return TurnError(
        f"{error.provider or 'The AI provider'} asks to wait {round(hint_s / 60)} minutes. "
        "Send the message again then, or choose another model.",
        ErrorKind.RATE_LIMIT,
        detail=error.detail,
        provider=error.provider,
        status_code=error.status_code,
        is_retryable=True,
    )


def held_back_since_of(before: Retry | None, error: ModelError, now: datetime) -> datetime | None:
    """Return when the call of the current attempt was first held back; None if it was made."""
    if not error.is_breaker_open:
        return None
    return now if before is None else before.held_back_since or now


def seconds_since(moment: datetime | None, now: datetime) -> float:
    """Return the seconds since a moment; 0 without one."""
    return 0.0 if moment is None else (now - moment).total_seconds()


def unreachable_since(before: Retry | None, error: ModelError, now: datetime) -> datetime | None:
    """Return when the first of the current series of unreachable attempts failed."""
    if not error.is_unreachable:
        return None
    return now if before is None else before.unreachable_since or now
