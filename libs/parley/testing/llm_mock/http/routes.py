"""Maps paths to protocols."""

import re

from parley.testing.llm_mock.exchange.dialect import Dialect
from parley.testing.llm_mock.providers.anthropic.messages import AnthropicMessages, BedrockMessages
from parley.testing.llm_mock.providers.openai.completions import ChatCompletions
from parley.testing.llm_mock.providers.openai.responses import OpenAIResponses

_COMPLETIONS = ChatCompletions()
_RESPONSES = OpenAIResponses()
_MESSAGES = AnthropicMessages()
_BEDROCK = BedrockMessages()

#: The exact paths; other paths contain a name, or the prefix of an endpoint.
PATHS: dict[str, Dialect] = {
    "/v1/messages": _MESSAGES,
    "/v1/chat/completions": _COMPLETIONS,
    "/v1/responses": _RESPONSES,
    "/openai/v1/chat/completions": _COMPLETIONS,
    "/openai/v1/responses": _RESPONSES,
}
PATTERNS: tuple[tuple[re.Pattern[str], Dialect], ...] = (
    (re.compile(r"/model/.+/invoke(-with-response-stream)?"), _BEDROCK),
    (re.compile(r"/openai/deployments/.+/chat/completions"), _COMPLETIONS),
    (re.compile(r"/.+/chat/completions"), _COMPLETIONS),
    (re.compile(r"/.+/responses"), _RESPONSES),
    (re.compile(r"/.+/messages"), _MESSAGES),
)


def dialect_at(path: str) -> Dialect | None:
    """Return the protocol of a path, None if it has none."""
    if (exact := PATHS.get(path)) is not None:
        return exact
    return next((dialect for pattern, dialect in PATTERNS if pattern.fullmatch(path)), None)
