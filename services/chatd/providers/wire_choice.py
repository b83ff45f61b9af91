"""Chooses the wire format of a model."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelError


class WireName(StrEnum):
    """A wire format."""

    ANTHROPIC = "anthropic"
    BEDROCK = "bedrock"
    RESPONSES = "responses"
    COMPLETIONS = "completions"


# Models that OpenAI serves with Responses, by name prefix.
_RESPONSES = re.compile(
    r"(gpt-4o|gpt-4\.1|gpt-4\.5|gpt-[5-9]|gpt-\d\d|o[1-9]|codex-|computer-use-|gpt-daybreak"
    r"|gpt-rosalind|ft:gpt-4o|ft:gpt-4\.1)"
)
# These have such a prefix but support only Chat Completions.
_COMPLETIONS_ONLY = re.compile(r"(audio|search-preview|^o1-preview|^o1-mini)")


def wire_name(
    provider_type: ProviderType, model_name: str, options: Mapping[str, object], provider_name: str
) -> WireName:
    """Return the wire format; the option `wire` chooses between OpenAI's two, where both exist.

    Raises:
        ModelError: The option is neither of the two, or the provider has no wire format.
    """
    match provider_type:
        case ProviderType.ANTHROPIC:
            return WireName.ANTHROPIC
        case ProviderType.BEDROCK:
            return WireName.BEDROCK
        case ProviderType.OPENAI:
            return _wanted(options, provider_name) or _of_openai(model_name)
        case ProviderType.AZURE:
            return _wanted(options, provider_name) or WireName.RESPONSES
        case ProviderType.OPENAI_COMPATIBLE:
            return _wanted(options, provider_name) or WireName.COMPLETIONS
        case ProviderType.SCRIPTED:
            raise _unusable(provider_name, "is the demo and speaks no protocol.")
        case _:
            assert_never(provider_type)


def _of_openai(model_name: str) -> WireName:
    name = model_name.lower()
    is_responses = _RESPONSES.match(name) and not _COMPLETIONS_ONLY.search(name)
    return WireName.RESPONSES if is_responses else WireName.COMPLETIONS


def _wanted(options: Mapping[str, object], provider_name: str) -> WireName | None:
    match options.get("wire"):
        case None:
            return None
        case WireName.RESPONSES:
            return WireName.RESPONSES
        case WireName.COMPLETIONS:
            return WireName.COMPLETIONS
        case _:
            raise _unusable(
                provider_name,
                "has an option `wire` that is neither `responses` nor `completions`; correct it.",
            )


def _unusable(provider_name: str, what: str) -> ModelError:
    return ModelError(
        ErrorKind.CONFIG,
        f"{provider_name} {what}",
        is_retryable=False,
        provider=provider_name,
    )
