"""Classifies failed calls: one table of rules, of which the first match decides."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelError
from chatd.providers.failure_detail import safe, safe_text
from chatd.providers.retry_after import retry_after_s
from chatd.providers.signals import UNKNOWN_PROVIDER, Signals, provider_label
from chatd.providers.wire import Failure

UNAVAILABLE = "{provider} is temporarily unavailable."
CLOSED = "{provider} closed the stream before the answer was complete."
GARBLED = "{provider} sent an answer that cannot be read."
OVERLOADED = "{provider} is overloaded at the moment."
BREAKER_OPEN = "Parley holds this call back, because too many calls to {provider} failed just now."
RATE_LIMITED = "{provider} limits how fast we may ask."
USAGE_LIMIT_REACHED = (
    "The usage limit for AI is reached. Ask an administrator, or check budget and billing."
)
CREDENTIALS_REFUSED = "{provider} did not accept our sign-in. Check its key and what that may do."
DISABLED = "{provider} was disabled. Ask an administrator."
TOO_LONG = (
    "The conversation is longer than the model can read. "
    "Summarise it, choose a model with a larger window or start a new chat."
)
MISCONFIGURED = "{provider} does not accept the configuration. Check the model and the provider."
EARLIER_ITEM_UNKNOWN = (
    "{provider} could not connect this request to its own earlier answers. "
    "Edit the last message to try again, or start a new chat."
)
CANCELLED = "The request was cancelled."
UNEXPECTED = "{provider} returned an unexpected error."

# HTTP/2 error codes after which a new stream may succeed.
HARMLESS_RESETS = frozenset(
    {"NO_ERROR", "INTERNAL_ERROR", "REFUSED_STREAM", "CANCEL", "ENHANCE_YOUR_CALM"}
)

OVERFLOW_WORDS = re.compile(
    r"context[ _]length[ _]exceeded|maximum (?:context|prompt) length|prompt is too long"
    r"|exceed\w* (?:the )?(?:model's )?(?:available |maximum )?context|input is too long"
    r"|token count exceeds the maximum"
)
CONFIG_WORDS = re.compile(
    r"(?:invalid|unsupported|unknown)[ _]model|model[ _]not[ _]found|not_found_error"
    r"|deploymentnotfound|\bmodel\b.{0,100}\b(?:not found|does not exist)|malformed config"
    r"|certificate.verify.failed"
    r"|(?:cannot|can't|could not|unable to|failed to) (?:resolve|locate|find|load|retrieve) "
    r"(?:aws )?credentials"
)
TIMEOUT_WORDS = re.compile(
    r"timeout|timed out|deadline|unavailable|connection (?:was )?re(?:set|fused)|\beof\b"
    r"|broken pipe|bad gateway|client conn(?:ection)? \w* ?(?:closed|lost|not usable)|force closed"
    r"|goaway|stream (?:was )?closed|use of closed network connection"
    r"|(?:no_error|internal_error|refused_stream|cancel|enhance_your_calm); received from peer"
)


def _any(signals: Signals) -> bool:
    return True


def _is_cut_off(signals: Signals) -> bool:
    return signals.failure.is_cut_off


def _is_garbled(signals: Signals) -> bool:
    return signals.failure.is_garbled


def _is_torn(signals: Signals) -> bool:
    """Return whether the connection failed before a status was received."""
    failure = signals.failure
    if failure.reset_code:
        return failure.reset_code in HARMLESS_RESETS
    return failure.is_transport and signals.status_code == 0


def _has_plain_reset(signals: Signals) -> bool:
    """Return whether the text may be matched, which it may not beside an HTTP/2 reset code."""
    return signals.failure.reset_code in HARMLESS_RESETS | {""}


def _is_config(signals: Signals) -> bool:
    words = signals.words
    return OVERFLOW_WORDS.search(words) is not None or CONFIG_WORDS.search(words) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of failure and its criteria: any matching status, pattern or predicate suffices.

    Attributes:
        kind: The kind of error.
        is_retryable: Whether the same call may succeed later.
        message: The message for users.
        statuses: Matching statuses.
        words: Pattern of matching texts.
        sign: Another criterion.
        in_own_words: Whether the pattern is matched only against the error's own text and codes.
        not_at: A status at which the rule does not match.
        unless_config: Whether a text about the configuration takes precedence.
        if_words: Whether the pattern is matched at all.
        code: The detail instead of the provider's text, which would only confuse.
    """

    kind: ErrorKind
    is_retryable: bool
    message: str
    statuses: frozenset[int] = frozenset()
    words: re.Pattern[str] | None = None
    sign: Callable[[Signals], bool] | None = None
    in_own_words: bool = False
    not_at: int = 0
    unless_config: bool = False
    if_words: Callable[[Signals], bool] = _any
    code: str = ""

    def fits(self, signals: Signals) -> bool:
        """Return whether the rule matches the failure."""
        if self.not_at and signals.status_code == self.not_at:
            return False
        if not self._is_given_away(signals):
            return False
        return not (self.unless_config and _is_config(signals))

    def _is_given_away(self, signals: Signals) -> bool:
        if signals.status_code in self.statuses:
            return True
        if self.sign is not None and self.sign(signals):
            return True
        text = signals.own_words if self.in_own_words else signals.words
        return (
            self.words is not None
            and self.words.search(text) is not None
            and self.if_words(signals)
        )


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


RULES = (
    # Before all patterns: the text of malformed bytes means nothing.
    Rule(ErrorKind.TIMEOUT, True, GARBLED, sign=_is_garbled),
    Rule(
        ErrorKind.GENERIC,
        False,
        CANCELLED,
        words=_words(r"\b(?:chat|request|operation) (?:was )?interrupted\b"),
        in_own_words=True,
    ),
    Rule(
        ErrorKind.GENERIC,
        False,
        EARLIER_ITEM_UNKNOWN,
        words=_words(r"no tool output found for function call"),
        code="responses_function_call_output_missing",
    ),
    Rule(
        ErrorKind.GENERIC,
        False,
        EARLIER_ITEM_UNKNOWN,
        words=_words(r"no tool call found for function call output"),
        code="responses_function_call_missing",
    ),
    Rule(
        ErrorKind.GENERIC,
        False,
        EARLIER_ITEM_UNKNOWN,
        words=_words(r"provided without its required '?(?:reasoning|following)'? item"),
        code="responses_reasoning_item_missing",
    ),
    Rule(
        ErrorKind.TIMEOUT,
        True,
        CLOSED,
        words=_words(r"(?:stream|response) (?:was )?closed before"),
        sign=_is_cut_off,
    ),
    Rule(
        ErrorKind.OVERLOADED,
        True,
        OVERLOADED,
        statuses=frozenset({529}),
        words=_words(r"overloaded"),
    ),
    Rule(
        ErrorKind.USAGE_LIMIT,
        False,
        USAGE_LIMIT_REACHED,
        words=_words(r"insufficient_quota|ai budget of"),
    ),
    Rule(
        ErrorKind.USAGE_LIMIT,
        False,
        USAGE_LIMIT_REACHED,
        statuses=frozenset({402}),
        words=_words(r"quota|billing|payment[ _]required"),
        not_at=429,
    ),
    Rule(
        ErrorKind.AUTH,
        False,
        CREDENTIALS_REFUSED,
        statuses=frozenset({401}),
        words=_words(r"authentication|unauthorized|invalid[ _](?:x-)?api[ _-]?key"),
    ),
    Rule(
        ErrorKind.AUTH,
        False,
        CREDENTIALS_REFUSED,
        statuses=frozenset({403}),
        words=_words(r"forbidden"),
        unless_config=True,
    ),
    Rule(
        ErrorKind.RATE_LIMIT,
        True,
        RATE_LIMITED,
        statuses=frozenset({429}),
        words=_words(r"rate[ _-]?limit|too many requests|throttlingexception"),
        in_own_words=True,
        unless_config=True,
    ),
    Rule(
        ErrorKind.PROVIDER_DISABLED,
        False,
        DISABLED,
        words=_words(r"provider[ _-]disabled"),
    ),
    Rule(
        ErrorKind.TIMEOUT,
        True,
        UNAVAILABLE,
        statuses=frozenset({408, 502, 503, 504}),
        words=TIMEOUT_WORDS,
        sign=_is_torn,
        if_words=_has_plain_reset,
        unless_config=True,
    ),
    Rule(ErrorKind.CONTEXT_OVERFLOW, False, TOO_LONG, words=OVERFLOW_WORDS),
    Rule(ErrorKind.CONFIG, False, MISCONFIGURED, words=CONFIG_WORDS),
    Rule(
        ErrorKind.GENERIC,
        True,
        UNEXPECTED,
        statuses=frozenset({500}),
        words=_words(r"server[ _]error"),
    ),
    Rule(ErrorKind.GENERIC, False, CANCELLED, words=_words(r"\bcancell?ed\b")),
    Rule(ErrorKind.GENERIC, False, UNEXPECTED, sign=_any),
)


def classify(
    failure: Failure,
    *,
    provider_type: ProviderType | None,
    provider_name: str,
    now: datetime,
) -> ModelError:
    """Classify a failure; the status is a separate attribute and never part of the message."""
    signals = Signals.of(failure)
    rule = next(rule for rule in RULES if rule.fits(signals))
    label = provider_label(provider_name, provider_type, signals.words)
    return ModelError(
        rule.kind,
        rule.message.format(provider=label),
        is_retryable=rule.is_retryable,
        retry_after_s=retry_after_s(failure.headers, now) if rule.is_retryable else None,
        provider="" if label == UNKNOWN_PROVIDER else label,
        status_code=signals.status_code,
        detail=rule.code or _detail(signals, rule.kind),
        is_unreachable=failure.is_unreachable and rule.is_retryable,
    )


def _detail(signals: Signals, kind: ErrorKind) -> str:
    """Return the provider's text; after failed authentication only that of its error body."""
    structured = safe(signals.error_body.message)
    if structured or kind is ErrorKind.AUTH:
        return structured
    return safe_text(signals.failure)
