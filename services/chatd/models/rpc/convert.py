"""Converts providers, models and their keys to protos, which have no field for a key's value."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from chatd.models.domain.catalogue import (
    Catalogue,
    Model,
    ModelOverride,
    Provider,
    ProviderKey,
    ProviderType,
    Purpose,
)
from chatd.models.domain.preferences import UserSettings
from chatd.models.domain.price import Price
from chatd.models.domain.price_book import PriceBook
from chatd.models.domain.profile import ReasoningEffort
from chatd.models.domain.resolution import price_of
from chatd.primitives.rpc.times import optional_time
from parley.api.chat.v1 import chat_pb2, model_pb2

TYPE = {kind: model_pb2.ProviderType.Value(f"PROVIDER_TYPE_{kind.name}") for kind in ProviderType}
TYPE_OF = {value: kind for kind, value in TYPE.items()}
PURPOSE = {
    purpose: model_pb2.ModelPurpose.Value(f"MODEL_PURPOSE_{purpose.name}") for purpose in Purpose
}
PURPOSE_OF = {value: purpose for purpose, value in PURPOSE.items()}
EFFORT = {
    ReasoningEffort.DEFAULT: chat_pb2.REASONING_EFFORT_UNSPECIFIED,
    ReasoningEffort.NONE: chat_pb2.REASONING_EFFORT_NONE,
    ReasoningEffort.MINIMAL: chat_pb2.REASONING_EFFORT_MINIMAL,
    ReasoningEffort.LOW: chat_pb2.REASONING_EFFORT_LOW,
    ReasoningEffort.MEDIUM: chat_pb2.REASONING_EFFORT_MEDIUM,
    ReasoningEffort.HIGH: chat_pb2.REASONING_EFFORT_HIGH,
    ReasoningEffort.XHIGH: chat_pb2.REASONING_EFFORT_XHIGH,
    ReasoningEffort.MAX: chat_pb2.REASONING_EFFORT_MAX,
}
EFFORT_OF = {value: effort for effort, value in EFFORT.items()}


def provider_to_proto(provider: Provider) -> model_pb2.Provider:
    """Return a provider as administrators see it."""
    return model_pb2.Provider(
        id=provider.id,
        name=provider.name,
        display_name=provider.display_name or provider.name,
        type=TYPE[provider.type],
        base_url=provider.base_url,
        enabled=provider.is_enabled,
        user_keys_allowed=provider.user_keys_allowed,
        keys=[key_to_proto(key) for key in provider.keys],
        options_json=_json(provider.options),
        created_at=optional_time(provider.created_at),
        etag="" if provider.is_given else str(provider.version),
        from_environment=provider.is_given,
    )


def key_to_proto(key: ProviderKey) -> model_pb2.ProviderKey:
    """Return a key without its value."""
    return model_pb2.ProviderKey(
        id=key.id,
        hint=key.hint,
        user_id=key.user_id,
        order=key.order,
        created_at=optional_time(key.created_at),
        provider_id=key.provider_id,
    )


def model_to_proto(
    model: Model, catalogue: Catalogue, book: PriceBook, settings: UserSettings, *, is_full: bool
) -> model_pb2.Model:
    """Return a model as a user with these settings sees it; its options need `is_full`."""
    entry = book.find(model.name)
    default = catalogue.default()
    price = price_of(model, entry)
    window = model.context_limit_tokens or (0 if entry is None else entry.context_limit_tokens)
    provider = catalogue.providers.get(model.provider_id)
    return model_pb2.Model(
        id=model.id,
        provider_id=model.provider_id,
        name=model.name,
        display_name=model.display_name or model.name,
        enabled=model.is_enabled,
        is_default=default is not None and default.id == model.id,
        context_limit_tokens=model.context_limit_tokens,
        output_limit_tokens=model.output_limit_tokens,
        compaction_threshold_percent=model.threshold_percent,
        default_effort=EFFORT[model.default_effort],
        max_effort=EFFORT[model.max_effort or _book_effort(book, model)],
        prices=_prices(model.price) if model.price != Price() else None,
        options_json=_json(model.options) if is_full else "",
        etag="" if model.is_given else str(model.version),
        from_environment=model.is_given,
        effective_prices=None if price is None else _prices(price),
        effective_context_limit_tokens=window,
        provider_display_name="" if provider is None else provider.display_name or provider.name,
        is_favourite=model.id in settings.favourite_model_ids,
        is_hidden=model.id in settings.hidden_model_ids,
        effective_compaction_threshold_percent=settings.threshold_percent(
            model.id, model.threshold_percent
        ),
    )


def override_to_proto(override: ModelOverride) -> model_pb2.ModelOverride:
    """Return the model of a purpose."""
    return model_pb2.ModelOverride(
        purpose=PURPOSE[override.purpose],
        model_id=override.model_id,
        reasoning_effort=EFFORT[override.reasoning_effort],
    )


def _book_effort(book: PriceBook, model: Model) -> ReasoningEffort:
    entry = book.find(model.name)
    return ReasoningEffort.DEFAULT if entry is None else entry.max_effort


def _prices(price: Price) -> model_pb2.Prices:
    def spelled(value: Decimal | None) -> str:
        return "" if value is None else f"{value:f}"

    return model_pb2.Prices(
        input=spelled(price.input),
        output=spelled(price.output),
        cache_read=spelled(price.cache_read),
        cache_write=spelled(price.cache_write),
    )


def _json(options: Mapping[str, object]) -> str:
    return msgspec.json.encode(options).decode()
