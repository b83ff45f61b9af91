import pytest

from chatd.models.domain.catalogue import DEMO_MODEL_ID, Model, ProviderType, Purpose
from chatd.providers.environment import (
    EnvironmentCatalogue,
    EnvironmentKeys,
    ListedModel,
    environment_catalogue,
    with_listed_models,
)
from parley.settings import Secret

KEY = Secret("sk-a-key-that-is-long-enough-1234")
LOCAL = "http://127.0.0.1:11434/v1"


def default_of(given: EnvironmentCatalogue) -> tuple[str, str]:
    """Return the provider and the name of the model that answers by default."""
    model = given.catalogue.default()
    assert model is not None
    return given.catalogue.providers[model.provider_id].name, model.name


def test_without_a_key_there_is_the_demo_alone() -> None:
    given = environment_catalogue(EnvironmentKeys())
    assert (given.provider_names, given.unlisted) == ((), ())
    assert default_of(given) == ("scripted", "scripted")


@pytest.mark.parametrize(
    ("keys", "provider", "kind", "default"),
    [
        (
            EnvironmentKeys(anthropic_api_key=KEY),
            "anthropic",
            ProviderType.ANTHROPIC,
            "claude-sonnet-5-5",
        ),
        (EnvironmentKeys(openai_api_key=KEY), "openai", ProviderType.OPENAI, "gpt-6.1-sol"),
        (
            EnvironmentKeys(openai_api_key=KEY, openai_base_url="https://api.openai.com/v1/"),
            "openai",
            ProviderType.OPENAI,
            "gpt-6.1-sol",
        ),
        (
            EnvironmentKeys(openai_base_url=LOCAL, model="llama3.3"),
            "openai-compatible",
            ProviderType.OPENAI_COMPATIBLE,
            "llama3.3",
        ),
        (
            EnvironmentKeys(
                azure_openai_api_key=KEY,
                azure_openai_endpoint="https://x.openai.azure.com/",
                model="ours",
            ),
            "azure",
            ProviderType.AZURE,
            "ours",
        ),
        (
            EnvironmentKeys(openrouter_api_key=KEY),
            "openrouter",
            ProviderType.OPENAI_COMPATIBLE,
            "openai/gpt-6.1-sol",
        ),
        (
            EnvironmentKeys(aws_access_key_id=KEY, aws_secret_access_key=KEY),
            "bedrock",
            ProviderType.BEDROCK,
            "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
        ),
    ],
)
def test_a_key_makes_a_provider_and_a_default_model(
    keys: EnvironmentKeys, provider: str, kind: ProviderType, default: str
) -> None:
    given = environment_catalogue(keys)
    assert given.provider_names == (provider,)
    assert default_of(given) == (provider, default)
    (found,) = (each for each in given.catalogue.providers.values() if each.name == provider)
    assert (found.type, found.is_given) == (kind, True)
    assert not found.base_url.endswith("/")


def test_a_key_is_recognised_by_its_end_and_opens_only_when_asked() -> None:
    given = environment_catalogue(EnvironmentKeys(anthropic_api_key=KEY))
    (key,) = next(iter(given.catalogue.providers.values())).keys
    assert (key.hint, given.values.open(key)) == ("1234", KEY)
    assert "sk-a" not in repr(given)


def test_keys_of_aws_go_together_as_the_wire_wants_them() -> None:
    given = environment_catalogue(
        EnvironmentKeys(
            aws_access_key_id=Secret("id"),
            aws_secret_access_key=Secret("secret"),
            aws_session_token=Secret("session"),
            aws_region="eu-west-1",
        )
    )
    (bedrock,) = (each for each in given.catalogue.providers.values() if each.name == "bedrock")
    assert bedrock.options == {"region": "eu-west-1"}
    assert given.values.open(bedrock.keys[0]) == Secret("id:secret:session")


@pytest.mark.parametrize(
    "keys",
    [
        EnvironmentKeys(aws_access_key_id=KEY),
        EnvironmentKeys(azure_openai_api_key=KEY),
        EnvironmentKeys(azure_openai_endpoint="https://x"),
        EnvironmentKeys(model="gpt-5"),
    ],
)
def test_half_of_what_a_provider_needs_makes_none(keys: EnvironmentKeys) -> None:
    assert environment_catalogue(keys).provider_names == ()
    assert environment_catalogue(keys).catalogue.default() is not None


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-opus-9", ("anthropic", "claude-opus-9")),
        ("gpt-9", ("openai", "gpt-9")),
        ("anthropic/claude-opus-9", ("anthropic", "claude-opus-9")),
        ("openrouter/openai/gpt-9", ("openrouter", "openai/gpt-9")),
        ("meta/llama", ("openrouter", "meta/llama")),
        ("gpt-6-luna", ("openai", "gpt-6-luna")),
        ("something", ("openai", "something")),
    ],
)
def test_the_default_that_is_named_finds_its_provider(
    model: str, expected: tuple[str, str]
) -> None:
    keys = EnvironmentKeys(
        anthropic_api_key=KEY, openai_api_key=KEY, openrouter_api_key=KEY, model=model
    )
    assert default_of(environment_catalogue(keys)) == expected


def test_every_process_gives_the_same_ids() -> None:
    keys = EnvironmentKeys(anthropic_api_key=KEY, openai_api_key=KEY)
    assert environment_catalogue(keys).catalogue == environment_catalogue(keys).catalogue
    assert len(environment_catalogue(keys).catalogue.models) == 13


def test_small_things_are_done_by_the_cheaper_model_of_the_defaults_provider() -> None:
    catalogue = environment_catalogue(
        EnvironmentKeys(anthropic_api_key=KEY, openai_api_key=KEY)
    ).catalogue
    override = catalogue.overrides[Purpose.UTILITY]
    assert catalogue.models[override.model_id].name == "claude-haiku-5-5"
    assert environment_catalogue(EnvironmentKeys(openai_base_url=LOCAL)).catalogue.overrides == {}


def test_models_that_an_endpoint_lists_are_added_and_the_first_answers() -> None:
    given = environment_catalogue(EnvironmentKeys(openai_base_url=LOCAL))
    (provider,) = given.unlisted
    assert default_of(given) == ("scripted", "scripted")
    learned = with_listed_models(
        given.catalogue, provider, (ListedModel("a", 8192), ListedModel("b"))
    )
    default = learned.default()
    assert default is not None
    assert (default.name, default.context_limit_tokens) == ("a", 8192)
    assert [model.name for model in learned.models.values()] == ["a", "b", "scripted"]
    assert isinstance(learned.models[DEMO_MODEL_ID], Model)


def test_a_default_that_was_named_stays_when_the_endpoint_lists_others() -> None:
    given = environment_catalogue(EnvironmentKeys(openai_base_url=LOCAL, model="b"))
    learned = with_listed_models(
        given.catalogue, given.unlisted[0], (ListedModel("a"), ListedModel("b", 4096))
    )
    default = learned.default()
    assert default is not None
    assert (default.name, default.context_limit_tokens) == ("b", 4096)
