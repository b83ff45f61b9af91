"""Timeouts and retry limits of model calls, from the settings."""

from chatd.providers.guarded import SILENT_S
from chatd.settings import Settings
from chatd.turns.domain.asking import ActionDeadlines
from chatd.turns.domain.retries import RetryPolicy
from chatd.turns.engine.dependencies import TurnLimits
from chatd.turns.engine.stream import StreamLimits

# A call that is cancelled after this share of the startup limit counts as failed.
SILENT_SHARE = 0.75


def retry_policy(settings: Settings) -> RetryPolicy:
    """Return the retry policy of failed model calls."""
    return RetryPolicy(
        attempts_max=settings.model_attempts_max,
        backoff_first_s=settings.model_backoff_first_s,
        backoff_max_s=settings.model_backoff_max_s,
        unreachable_max_s=settings.model_unreachable_max_s,
        hint_max_s=settings.model_hint_max_s,
        outage_max_s=settings.model_outage_max_s,
    )


def turn_limits(settings: Settings) -> TurnLimits:
    """Return the stream timeouts, the retry limits and the deadlines of actions."""
    stream = StreamLimits(startup_s=settings.model_startup_s, silence_s=settings.model_silence_s)
    deadlines = ActionDeadlines(
        settings.client_tool_deadline_s,
        settings.question_deadline_s or None,
        settings.approval_deadline_s or None,
    )
    return TurnLimits(stream=stream, retries=retry_policy(settings), deadlines=deadlines)


def silent_s(settings: Settings) -> float:
    """Return after how many seconds without an answer a call counts as its provider's failure."""
    return min(SILENT_S, settings.model_startup_s * SILENT_SHARE)
