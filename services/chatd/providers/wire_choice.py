"""Which wire format a model is spoken to in, decided once and in one place."""

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


# What OpenAI serves under Responses, by the beginnings of names.
_RESPONSES = re.compile(
    r"(gpt-4o|gpt-4\.1|gpt-4\.5|gpt-[5-9]|gpt-\d\d|o[1-9]|codex-|computer-use-|gpt-daybreak"
    r"|gpt-rosalind|ft:gpt-4o|ft:gpt-4\.1)"
)
# These begin alike but know Chat Completions only.
_COMPLETIONS_ONLY = re.compile(r"(audio|search-preview|^o1-preview|^o1-mini)")


def wire_name(
    provider_type: ProviderType, model_name: str, options: Mapping[str, object], provider_name: str
) -> WireName:
    """Return the wire format; the option `wire` says which of OpenAI's two, where both exist.

    Raises:
        ModelError: the option is none of the two, or there is nothing to speak to.
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
