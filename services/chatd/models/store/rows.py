"""Columns of providers, keys and models, and their conversion."""

from decimal import Decimal

import msgspec

from chatd.models.domain.catalogue import (
    Model,
    ModelOverride,
    Provider,
    ProviderKey,
    ProviderType,
    Purpose,
)
from chatd.models.domain.price import Price
from chatd.models.domain.profile import ReasoningEffort
from chatd.primitives.store.rows import Row

PROVIDER_COLUMNS = """
    id, name, display_name, type, base_url, is_enabled, user_keys_allowed, options::text AS options,
    version, request_hash, created_at, deleted_at
"""
KEY_COLUMNS = "id, provider_id, user_id, position, hint, request_hash, created_at"
MODEL_COLUMNS = """
    id, provider_id, name, display_name, is_enabled, is_default, context_limit_tokens,
    output_limit_tokens, threshold_percent, default_effort, max_effort, input_price, output_price,
    cache_read_price, cache_write_price, options::text AS options, version, request_hash,
    created_at, deleted_at
"""

_encoder = msgspec.json.Encoder()
_options_decoder = msgspec.json.Decoder(dict[str, object])


def provider_of(row: Row, keys: tuple[ProviderKey, ...] = ()) -> Provider:
    """Return a provider with its keys."""
    return Provider(
        id=str(row["id"]),
        name=row["name"],
        display_name=row["display_name"],
        type=ProviderType(row["type"]),
        base_url=row["base_url"],
        is_enabled=row["is_enabled"],
        user_keys_allowed=row["user_keys_allowed"],
        options=_options_decoder.decode(row["options"]),
        keys=keys,
        created_at=row["created_at"],
        version=row["version"],
        is_deleted=row["deleted_at"] is not None,
    )


def key_of(row: Row) -> ProviderKey:
    """Return a key without its value."""
    user_id = row["user_id"]
    return ProviderKey(
        id=str(row["id"]),
        provider_id=str(row["provider_id"]),
        hint=row["hint"],
        user_id="" if user_id is None else str(user_id),
        order=row["position"],
        created_at=row["created_at"],
    )


def model_of(row: Row) -> Model:
    """Return a model."""
    return Model(
        id=str(row["id"]),
        provider_id=str(row["provider_id"]),
        name=row["name"],
        display_name=row["display_name"],
        is_enabled=row["is_enabled"],
        is_default=row["is_default"],
        context_limit_tokens=row["context_limit_tokens"],
        output_limit_tokens=row["output_limit_tokens"],
        threshold_percent=row["threshold_percent"],
        default_effort=ReasoningEffort(row["default_effort"]),
        max_effort=ReasoningEffort(row["max_effort"]),
        price=Price(
            input=row["input_price"],
            output=row["output_price"],
            cache_read=row["cache_read_price"],
            cache_write=row["cache_write_price"],
        ),
        options=_options_decoder.decode(row["options"]),
        version=row["version"],
        is_deleted=row["deleted_at"] is not None,
    )


def override_of(row: Row) -> ModelOverride:
    """Return the override of a purpose."""
    return ModelOverride(
        Purpose(row["purpose"]), row["model_id"], ReasoningEffort(row["reasoning_effort"])
    )


def provider_arguments(provider: Provider) -> tuple[object, ...]:
    """Return the column values of a provider, without those that only the store sets."""
    return (
        provider.id,
        provider.name,
        provider.display_name,
        provider.type,
        provider.base_url,
        provider.is_enabled,
        provider.user_keys_allowed,
        _encoder.encode(provider.options).decode(),
    )


def model_arguments(model: Model) -> tuple[object, ...]:
    """Return the column values of a model, without those that only the store sets."""
    prices: tuple[Decimal | None, ...] = (
        model.price.input,
        model.price.output,
        model.price.cache_read,
        model.price.cache_write,
    )
    return (
        model.id,
        model.provider_id,
        model.name,
        model.display_name,
        model.is_enabled,
        model.is_default,
        model.context_limit_tokens,
        model.output_limit_tokens,
        model.threshold_percent,
        model.default_effort,
        model.max_effort,
        *prices,
        _encoder.encode(model.options).decode(),
    )
