"""Extracts status, text and provider name from a failure, for the classifier."""

import re
from dataclasses import dataclass

from chatd.models.domain.catalogue import ProviderType
from chatd.providers.failure_detail import ErrorBody, error_body_of
from chatd.providers.wire import Failure

UNKNOWN_PROVIDER = "The AI provider"

_NAMED_STATUS = re.compile(
    r"\b(?:status(?:[ _]code)?|http(?:/\d(?:\.\d)?)?)[\s:=]*([1-5]\d\d)(?![\w]|\.\d)"
)
_STANDALONE_STATUS = re.compile(
    r"(?<![\w.:/-])(401|403|408|429|500|502|503|504|529)(?![\w-]|[.:]\d)"
)
_NO_STATUS_AFTER = re.compile(r"(?:stream[ _]?id|port)\s*[:=#]?\s*$")

_GUESSES = (
    (re.compile(r"openai[ _-]compat"), "The OpenAI-compatible endpoint"),
    (re.compile(r"\bazure"), "Azure OpenAI"),
    (re.compile(r"openrouter"), "OpenRouter"),
    (re.compile(r"bedrock"), "AWS Bedrock"),
    (re.compile(r"\bvercel"), "Vercel AI Gateway"),
    (re.compile(r"anthropic|\bclaude"), "Anthropic"),
    (re.compile(r"\bgoogle|gemini|\bvertex"), "Google"),
    (re.compile(r"openai"), "OpenAI"),
)
_TYPE_NAMES = {
    ProviderType.ANTHROPIC: "Anthropic",
    ProviderType.OPENAI: "OpenAI",
    ProviderType.OPENAI_COMPATIBLE: "",
    ProviderType.AZURE: "Azure OpenAI",
    ProviderType.BEDROCK: "AWS Bedrock",
    ProviderType.SCRIPTED: "",
}


@dataclass(frozen=True, slots=True)
class Signals:
    """The inputs of the rules.

    Attributes:
        status_code: Status of the response, or the one that the text names; else 0.
        own_words: The error's own text and codes, in lower case.
        words: The same, and the message of the error body.
        failure: The failure itself.
        error_body: The content of the body.
    """

    status_code: int
    own_words: str
    words: str
    failure: Failure
    error_body: ErrorBody

    @classmethod
    def of(cls, failure: Failure) -> "Signals":
        """Return the signals of a failure."""
        error_body = error_body_of(failure)
        own_words = " ".join((failure.text, *error_body.codes)).lower()
        words = f"{own_words} {error_body.message.lower()}"
        return cls(_status(failure, error_body, words), own_words, words, failure, error_body)


def provider_label(name: str, provider_type: ProviderType | None, words: str) -> str:
    """Return the provider's name for an error: as configured, or guessed from the text."""
    if name:
        return name
    known = _TYPE_NAMES[provider_type] if provider_type is not None else ""
    if known:
        return known
    return next((label for pattern, label in _GUESSES if pattern.search(words)), UNKNOWN_PROVIDER)


def _status(failure: Failure, error_body: ErrorBody, words: str) -> int:
    if failure.status_code:
        return failure.status_code
    if error_body.status_code:
        return error_body.status_code
    named = _NAMED_STATUS.search(words)
    if named is not None:
        return int(named[1])
    for found in _STANDALONE_STATUS.finditer(words):
        if not _NO_STATUS_AFTER.search(words[: found.start()]):
            return int(found[1])
    return 0
