"""Providers, keys and models that cannot be: each is refused by the name of its field."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chatd.models.domain.catalogue import DEMO
from chatd.models.rpc.fields import TOKENS_MAX
from parley.api.chat.v1 import model_pb2
from parley.api.chat.v1 import model_service_pb2 as api
from parley.postgres import Pool
from support.chatd.models.served_models import ServedModels, served_models


@pytest.fixture
async def served(pool: Pool, tmp_path: Path) -> AsyncIterator[ServedModels]:
    async with served_models(pool, tmp_path, given=DEMO) as running:
        yield running


BAD_PROVIDERS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "provider.name"),
    ({"name": "Ours"}, "provider.name"),
    ({"name": "a--b"}, "provider.name"),
    ({"type": 0}, "provider.type"),
    ({"type": model_pb2.PROVIDER_TYPE_SCRIPTED}, "provider.type"),
    ({"base_url": "ftp://x"}, "provider.base_url"),
    ({"base_url": "file:///etc/passwd"}, "provider.base_url"),
    ({"base_url": "http://"}, "provider.base_url"),
    ({"base_url": "https://user:pass@x"}, "provider.base_url"),
    ({"base_url": "https://x/v1?key=1"}, "provider.base_url"),
    ({"base_url": "https://x:port"}, "provider.base_url"),
    ({"type": model_pb2.PROVIDER_TYPE_OPENAI_COMPATIBLE}, "provider.base_url"),
    ({"options_json": "[]"}, "provider.options_json"),
    ({"options_json": "{"}, "provider.options_json"),
    ({"options_json": '{"region": "us-east-1.evil.example"}'}, "provider.options_json"),
    ({"options_json": '{"extra_headers": {"hOst": "evil.example"}}'}, "provider.options_json"),
    ({"display_name": "x" * 129}, "provider.display_name"),
]
BAD_MODELS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "model.name"),
    ({"name": "a\nb"}, "model.name"),
    ({"context_limit_tokens": -1}, "model.context_limit_tokens"),
    ({"output_limit_tokens": 10**12}, "model.output_limit_tokens"),
    ({"compaction_threshold_percent": 101}, "model.compaction_threshold_percent"),
    ({"prices": model_pb2.Prices(input="-1")}, "model.prices.input"),
    ({"prices": model_pb2.Prices(output="cheap")}, "model.prices.output"),
    ({"prices": model_pb2.Prices(cache_read="NaN")}, "model.prices.cache_read"),
    ({"prices": model_pb2.Prices(cache_write="1e99")}, "model.prices.cache_write"),
    ({"prices": model_pb2.Prices(input="1e-999999")}, "model.prices.input"),
    ({"prices": model_pb2.Prices(input="1_000")}, "model.prices.input"),
    ({"prices": model_pb2.Prices(input="1000000.01")}, "model.prices.input"),
    ({"options_json": '"x"'}, "model.options_json"),
    ({"provider_id": "x"}, "model.provider_id"),
    ({"max_effort": 99}, "model.max_effort"),
]


@pytest.mark.parametrize(("wrong", "field"), BAD_PROVIDERS)
async def test_a_wrong_field_of_a_provider_is_named(
    served: ServedModels, wrong: dict[str, Any], field: str
) -> None:
    given: dict[str, Any] = {"name": "ours", "type": model_pb2.PROVIDER_TYPE_OPENAI, **wrong}
    refused = await served.ada.refusal(
        api.CreateProviderRequest(provider=model_pb2.Provider(**given))
    )
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", field)


@pytest.mark.parametrize(("wrong", "field"), BAD_MODELS)
async def test_a_wrong_field_of_a_model_is_named(
    served: ServedModels, wrong: dict[str, Any], field: str
) -> None:
    provider = await served.ada.provider()
    given: dict[str, Any] = {"provider_id": provider.id, "name": "m", **wrong}
    refused = await served.ada.refusal(api.CreateModelRequest(model=model_pb2.Model(**given)))
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", field)


async def test_all_that_is_wrong_with_a_provider_or_a_model_is_told_at_once(
    served: ServedModels,
) -> None:
    wrong = model_pb2.Provider(name="", base_url="ftp://x", options_json="[]")
    refused = await served.ada.refusal(api.CreateProviderRequest(provider=wrong))
    fields = ["name", "type", "base_url", "options_json"]
    assert [each.field for each in refused.violations] == [f"provider.{each}" for each in fields]
    provider = await served.ada.provider()
    model = model_pb2.Model(
        provider_id=provider.id,
        name="a\nb",
        options_json="[]",
        prices=model_pb2.Prices(input="-1", output="2", cache_write="cheap"),
        output_limit_tokens=2 * TOKENS_MAX,
    )
    refused = await served.ada.refusal(api.CreateModelRequest(model=model))
    fields = ["name", "options_json", "prices.input", "prices.cache_write", "output_limit_tokens"]
    assert [each.field for each in refused.violations] == [f"model.{each}" for each in fields]


@pytest.mark.parametrize("key", ["", "  ", "a b", "a\nb", "a\0b", "x" * 9000])
async def test_a_wrong_key_is_refused_and_not_repeated(served: ServedModels, key: str) -> None:
    provider = await served.ada.provider()
    refused = await served.ada.refusal(api.AddProviderKeyRequest(provider_id=provider.id, key=key))
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", "key")
    assert not key.strip() or key not in refused.message


async def test_a_model_of_a_provider_that_is_not_there_is_refused(served: ServedModels) -> None:
    request = api.CreateModelRequest(
        model=model_pb2.Model(provider_id="00000000-0000-0000-0000-000000000099", name="m")
    )
    refused = await served.ada.refusal(request)
    assert (refused.reason, refused.metadata["resource"]) == ("RESOURCE_NOT_FOUND", "provider")
