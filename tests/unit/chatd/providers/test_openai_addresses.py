"""Where calls in OpenAI's formats go, and as whom."""

import pytest

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelError
from chatd.models.engine.target import Target
from chatd.providers.openai_addresses import address
from parley.settings import Secret

JSON = {"Content-Type": "application/json"}
BEARER = {"Authorization": "Bearer key", **JSON}


def target(
    provider_type: ProviderType, base_url: str = "", key: str = "key", **options: object
) -> Target:
    return Target("p", provider_type, "Acme", "gpt-5", base_url, Secret(key), options)


def refusal(of: Target) -> ErrorKind:
    with pytest.raises(ModelError) as caught:
        address(of, "responses")
    assert not caught.value.is_retryable
    assert caught.value.provider == "Acme"
    return caught.value.kind


def test_openai_is_called_at_its_own_address_with_the_key_as_bearer() -> None:
    found = address(target(ProviderType.OPENAI), "responses")
    assert found == ("https://api.openai.com/v1/responses", BEARER)


def test_openai_may_live_elsewhere_and_be_told_organization_and_project() -> None:
    found = address(
        target(ProviderType.OPENAI, "https://eu.example/v1", organization="org", project="proj"),
        "chat/completions",
    )
    named = {"OpenAI-Organization": "org", "OpenAI-Project": "proj"}
    assert found == ("https://eu.example/v1/chat/completions", BEARER | named)


def test_a_compatible_endpoint_is_called_at_its_address() -> None:
    found = address(target(ProviderType.OPENAI_COMPATIBLE, "https://x.example/v1"), "responses")
    assert found == ("https://x.example/v1/responses", BEARER)


def test_a_compatible_endpoint_may_want_no_key() -> None:
    found = address(target(ProviderType.OPENAI_COMPATIBLE, "http://x/v1", key=""), "responses")
    assert found == ("http://x/v1/responses", JSON)


@pytest.mark.parametrize("suffix", ["", "/openai", "/openai/v1"])
def test_azure_is_called_at_its_v1_path_however_its_base_was_written(suffix: str) -> None:
    found = address(target(ProviderType.AZURE, f"https://a.example{suffix}"), "responses")
    assert found == ("https://a.example/openai/v1/responses", {"api-key": "key", **JSON})


def test_azure_with_a_version_is_called_at_its_deployment() -> None:
    azure = target(ProviderType.AZURE, "https://a.example", api_version="2025-04-01-preview")
    url, _ = address(azure, "chat/completions")
    expected = "https://a.example/openai/deployments/gpt-5/chat/completions"
    assert url == f"{expected}?api-version=2025-04-01-preview"


def test_a_deployment_may_have_its_own_name() -> None:
    azure = target(
        ProviderType.AZURE, "https://a.example", api_version="1", deployment="my model/eu"
    )
    url, _ = address(azure, "chat/completions")
    expected = "https://a.example/openai/deployments/my%20model%2Feu/chat/completions"
    assert url == f"{expected}?api-version=1"


def test_azure_with_a_version_has_no_deployment_in_the_path_of_responses() -> None:
    azure = target(ProviderType.AZURE, "https://a.example", api_version="1")
    assert address(azure, "responses")[0] == "https://a.example/openai/responses?api-version=1"


@pytest.mark.parametrize("token", ["entra", Secret("entra")])
def test_azure_takes_a_token_instead_of_a_key(token: object) -> None:
    azure = target(ProviderType.AZURE, "https://a.example", key="", azure_ad_token=token)
    assert address(azure, "responses")[1] == {"Authorization": "Bearer entra", **JSON}


def test_azure_takes_the_key_as_a_token_when_told_so() -> None:
    azure = target(ProviderType.AZURE, "https://a.example", azure_ad_token=True)
    assert address(azure, "responses")[1] == BEARER


def test_extra_headers_and_query_are_added_and_win_whatever_their_case() -> None:
    found = address(
        target(
            ProviderType.AZURE,
            "https://a.example",
            api_version="1",
            extra_headers={"API-KEY": "other", "X-Team": "a"},
            extra_query={"api-version": "2", "trace": "a b"},
        ),
        "responses",
    )
    url = "https://a.example/openai/responses?api-version=2&trace=a+b"
    assert found == (url, {**JSON, "API-KEY": "other", "X-Team": "a"})


def test_a_line_break_that_was_copied_with_a_key_is_not_sent() -> None:
    assert address(target(ProviderType.OPENAI, key=" key\n"), "responses")[1] == BEARER


@pytest.mark.parametrize(
    ("unusable", "kind"),
    [
        (target(ProviderType.OPENAI, key=""), ErrorKind.MISSING_KEY),
        (target(ProviderType.AZURE, "https://a", key=""), ErrorKind.MISSING_KEY),
        (target(ProviderType.OPENAI, key="a\nb"), ErrorKind.CONFIG),
        (target(ProviderType.OPENAI, key="schlüssel"), ErrorKind.CONFIG),
        (target(ProviderType.AZURE), ErrorKind.CONFIG),
        (target(ProviderType.OPENAI_COMPATIBLE), ErrorKind.CONFIG),
        (target(ProviderType.ANTHROPIC), ErrorKind.CONFIG),
        (target(ProviderType.BEDROCK), ErrorKind.CONFIG),
        (target(ProviderType.SCRIPTED), ErrorKind.CONFIG),
        (target(ProviderType.OPENAI, organization=7), ErrorKind.CONFIG),
        (target(ProviderType.OPENAI, extra_headers=["a"]), ErrorKind.CONFIG),
        (target(ProviderType.OPENAI, extra_headers={"a": "b\r\nc: d"}), ErrorKind.CONFIG),
        (target(ProviderType.AZURE, "https://a", azure_ad_token=7), ErrorKind.CONFIG),
    ],
)
def test_a_target_that_cannot_be_called_is_refused(unusable: Target, kind: ErrorKind) -> None:
    assert refusal(unusable) is kind


def test_no_error_tells_the_key() -> None:
    with pytest.raises(ModelError) as caught:
        address(target(ProviderType.OPENAI, key="secret\nkey"), "responses")
    assert "secret" not in repr(caught.value.turn_error)


def test_the_host_header_cannot_be_set_as_an_option() -> None:
    of = target(ProviderType.OPENAI, extra_headers={"HOST": "evil.test"})
    assert refusal(of) is ErrorKind.CONFIG
