import pytest

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelError
from chatd.providers.wire_choice import WireName, wire_name

ANTHROPIC, BEDROCK, RESPONSES, COMPLETIONS = (
    WireName.ANTHROPIC,
    WireName.BEDROCK,
    WireName.RESPONSES,
    WireName.COMPLETIONS,
)


@pytest.mark.parametrize(
    ("kind", "model_name", "options", "expected"),
    [
        (ProviderType.ANTHROPIC, "claude-sonnet-5-5", {}, ANTHROPIC),
        (ProviderType.ANTHROPIC, "claude-sonnet-5-5", {"wire": "completions"}, ANTHROPIC),
        (ProviderType.BEDROCK, "anthropic.claude-opus-4-1", {}, BEDROCK),
        (ProviderType.OPENAI, "gpt-6.1-sol", {}, RESPONSES),
        (ProviderType.OPENAI, "gpt-5-mini-2025-08-07", {}, RESPONSES),
        (ProviderType.OPENAI, "gpt-4o", {}, RESPONSES),
        (ProviderType.OPENAI, "o4-mini", {}, RESPONSES),
        (ProviderType.OPENAI, "codex-mini-latest", {}, RESPONSES),
        (ProviderType.OPENAI, "gpt-3.5-turbo", {}, COMPLETIONS),
        (ProviderType.OPENAI, "gpt-4-turbo", {}, COMPLETIONS),
        (ProviderType.OPENAI, "gpt-4o-audio-preview", {}, COMPLETIONS),
        (ProviderType.OPENAI, "gpt-4o-search-preview", {}, COMPLETIONS),
        (ProviderType.OPENAI, "o1-mini", {}, COMPLETIONS),
        (ProviderType.OPENAI, "gpt-5", {"wire": "completions"}, COMPLETIONS),
        (ProviderType.OPENAI, "gpt-3.5-turbo", {"wire": "responses"}, RESPONSES),
        (ProviderType.AZURE, "our-deployment", {}, RESPONSES),
        (ProviderType.AZURE, "our-deployment", {"wire": "completions"}, COMPLETIONS),
        (ProviderType.OPENAI_COMPATIBLE, "gpt-5", {}, COMPLETIONS),
        (ProviderType.OPENAI_COMPATIBLE, "gpt-5", {"wire": "responses"}, RESPONSES),
    ],
)
def test_the_wire_is_one_value_for_type_name_and_option(
    kind: ProviderType, model_name: str, options: dict[str, object], expected: WireName
) -> None:
    assert wire_name(kind, model_name, options, "Ours") is expected


@pytest.mark.parametrize("wire", ["anthropic", "", 1, True])
def test_an_option_that_is_no_wire_is_an_error_that_says_so(wire: object) -> None:
    with pytest.raises(ModelError) as refused:
        wire_name(ProviderType.OPENAI, "gpt-5", {"wire": wire}, "Ours")
    assert (refused.value.kind, refused.value.is_retryable) == (ErrorKind.CONFIG, False)


def test_the_demo_has_no_wire() -> None:
    with pytest.raises(ModelError):
        wire_name(ProviderType.SCRIPTED, "scripted", {}, "Demo")
