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
        outage_max_s: How long attempts continue at a provider that fails, together with the time
            in which calls are held back.
    """

    attempts_max: int = 25
    backoff_first_s: float = 1.0
    backoff_max_s: float = 60.0
    unreachable_max_s: float = 180.0
    hint_max_s: float = 600.0
    outage_max_s: float = 600.0
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
        outage_s: For how long the provider has failed, or calls have been held back.
    """

    error: ModelError
    attempt: int
    chats_running: int = 1
    unreachable_s: float = 0.0
    outage_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Series:
    """When the series of failures began that the last one belongs to; None if to none of a kind.

    Attributes:
        unreachable_since: Of attempts without a byte of an answer.
        held_back_since: Of calls of one attempt that were held back.
        outage_since: Of failures of the provider.
    """

    unreachable_since: datetime | None = None
    held_back_since: datetime | None = None
    outage_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Limit:
    """A time for failures of one kind, and the error of a turn for which it is over."""

    left_s: float
    error: TurnError


def after_failure(failed: Failed, jitter: float, policy: RetryPolicy) -> RetryIn | GiveUp:
    """Decide what follows a failed attempt; `jitter` is between 0 and 1.

    The provider's hint is a lower bound. Jitter is added, so that chats that failed together do not
    retry together; it grows with the number of chats. A provider that is unreachable or fails is
    tried for a limited time only, and at the end of it for the last time.
    """
    error, attempt = failed.error, failed.attempt
    is_last = attempt >= policy.attempts_max and not error.is_breaker_open
    if is_last or not error.is_retryable:
        return GiveUp(error.turn_error)
    hint_s = error.retry_after_s or 0.0
    if hint_s > policy.hint_max_s:
        return GiveUp(_asked_to_wait(error, hint_s))
    doublings = min(attempt - 1, 30)
    backoff_s = min(policy.backoff_first_s * 2**doublings, policy.backoff_max_s)
    crowd_s = min(failed.chats_running * policy.hint_share_s, policy.hint_spread_max_s)
    jitter_s = max(backoff_s, crowd_s) if hint_s else backoff_s
    delay_s = max(backoff_s, hint_s) + jitter * jitter_s
    limit = _limit(failed, policy)
    if limit is None:
        return RetryIn(delay_s)
    if limit.left_s <= 0:
        return GiveUp(limit.error)
    asked_s = 0.0 if error.is_breaker_open else hint_s
    return RetryIn(max(min(delay_s, limit.left_s), asked_s))


def _limit(failed: Failed, policy: RetryPolicy) -> _Limit | None:
    """Return the limit that a failure reaches first; None for one without a limit of time."""
    error, limits = failed.error, list[_Limit]()
    if error.is_unreachable:
        left_s = policy.unreachable_max_s - failed.unreachable_s
        limits.append(_Limit(left_s, _unreachable(error, policy.unreachable_max_s)))
    if is_outage(error):
        left_s = policy.outage_max_s - failed.outage_s
        limits.append(_Limit(left_s, _outage(error, policy.outage_max_s)))
    return min(limits, key=lambda limit: limit.left_s, default=None)


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


def _unreachable(error: ModelError, tried_s: float) -> TurnError:
    told = (
        f"{error.provider or 'The AI provider'} could not be reached for {_duration(tried_s)}. "
        "Check its address and that it runs, then send the message again."
    )
    return replace(error.turn_error, message=told)


def _outage(error: ModelError, tried_s: float) -> TurnError:
    if error.is_unreachable:
        return _unreachable(error, tried_s)
    told = (
        f"{error.provider or 'The AI provider'} failed for {_duration(tried_s)}. "
        "Wait a while, then send the message again, or choose another model."
    )
    return replace(error.turn_error, message=told)


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


def is_outage(error: ModelError) -> bool:
    """Return whether a failure is the provider's: it fails, is unreachable, or calls are held back.

    Neither is a rate limit, nor an answer that was cut after it had begun.
    """
    is_failing = error.kind is ErrorKind.OVERLOADED or error.status_code >= 500
    return is_failing or error.is_unreachable or error.is_breaker_open


def series_of(before: Retry | None, error: ModelError, now: datetime) -> Series:
    """Return when the series of failures that a failure continues or begins have begun."""

    def since(begun: datetime | None, *, is_continued: bool) -> datetime | None:
        return (begun or now) if is_continued else None

    earlier = Series()
    if before is not None:
        earlier = Series(before.unreachable_since, before.held_back_since, before.outage_since)
    return Series(
        since(earlier.unreachable_since, is_continued=error.is_unreachable),
        since(earlier.held_back_since, is_continued=error.is_breaker_open),
        since(earlier.outage_since, is_continued=is_outage(error)),
    )


def seconds_since(moment: datetime | None, now: datetime) -> float:
    """Return the seconds since a moment; 0 without one."""
    return 0.0 if moment is None else (now - moment).total_seconds()
