"""Converts models, providers and settings between the JSON of the API and chatd's protos.

A field that is not named here is not returned; no proto contains the value of a key.
"""

from decimal import Decimal
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from gateway.api.convert.chat_requests import effort_to_proto, given_fields, json_text
from gateway.api.convert.parts import EFFORT, Json, embedded_json, enum_names, time_of
from gateway.api.inputs.models import (
    InstallationPatch,
    ModelPatch,
    NewModel,
    NewOverride,
    NewProvider,
    PricesInput,
    ProviderPatch,
    ProviderType,
    UserSettingsPatch,
)
from parley.api.chat.v1 import model_pb2, model_service_pb2, settings_pb2, settings_service_pb2

PROVIDER_TYPE = enum_names(model_pb2.ProviderType, "PROVIDER_TYPE_")
PURPOSE = enum_names(model_pb2.ModelPurpose, "MODEL_PURPOSE_")
PURPOSES = {word: value for value, word in PURPOSE.items() if word is not None}


def model_to_json(model: model_pb2.Model) -> Json:
    """Convert a model."""
    return {
        "id": model.id,
        "provider_id": model.provider_id,
        "name": model.name,
        "display_name": model.display_name or model.name,
        "enabled": model.enabled,
        "is_default": model.is_default,
        "context_limit_tokens": model.context_limit_tokens,
        "effective_context_limit_tokens": model.effective_context_limit_tokens or None,
        "output_limit_tokens": model.output_limit_tokens,
        "compaction_threshold_percent": model.compaction_threshold_percent,
        "default_effort": EFFORT.get(model.default_effort),
        "max_effort": EFFORT.get(model.max_effort),
        "prices": _prices_to_json(model, "prices"),
        "effective_prices": _prices_to_json(model, "effective_prices"),
        "options": embedded_json(model.options_json or "{}"),
        "from_environment": model.from_environment,
        "etag": model.etag or None,
    }


def override_to_json(override: model_pb2.ModelOverride) -> Json:
    """Convert the model override of a purpose."""
    return {
        "purpose": PURPOSE.get(override.purpose),
        "model_id": override.model_id or None,
        "reasoning_effort": EFFORT.get(override.reasoning_effort),
    }


def provider_to_json(provider: model_pb2.Provider) -> Json:
    """Convert a provider for administrators."""
    return {
        "id": provider.id,
        "name": provider.name,
        "display_name": provider.display_name or provider.name,
        "type": PROVIDER_TYPE.get(provider.type),
        "base_url": provider.base_url or None,
        "enabled": provider.enabled,
        "user_keys_allowed": provider.user_keys_allowed,
        "keys": [key_to_json(key) for key in provider.keys],
        "options": embedded_json(provider.options_json or "{}"),
        "created_at": time_of(provider, "created_at"),
        "from_environment": provider.from_environment,
        "etag": provider.etag or None,
    }


def provider_name_to_json(provider: model_pb2.Provider) -> Json:
    """Convert the fields of a provider that every user may see."""
    return {
        "id": provider.id,
        "name": provider.name,
        "display_name": provider.display_name or provider.name,
    }


def key_to_json(key: model_pb2.ProviderKey) -> Json:
    """Convert a key, without its value."""
    return {
        "id": key.id,
        "provider_id": key.provider_id or None,
        "hint": key.hint,
        "user_id": key.user_id or None,
        "order": key.order,
        "created_at": time_of(key, "created_at"),
    }


def check_to_json(answer: model_service_pb2.CheckProviderResponse) -> Json:
    """Convert the result of a provider check: the status of each key, and the models."""
    return {
        "keys": [
            {
                "key_id": check.key_id or None,
                "works": check.works,
                "problem": check.problem or None,
            }
            for check in answer.keys
        ],
        "model_names": list(answer.model_names),
    }


def installation_to_json(settings: settings_pb2.InstallationSettings) -> Json:
    """Convert the settings of the installation."""
    return {
        "system_prompt": settings.system_prompt,
        "include_default_system_prompt": settings.include_default_system_prompt,
        "plan_mode_instructions": settings.plan_mode_instructions,
        "compact_on_final_step": settings.compact_on_final_step,
        "workspace_ttl_ms": settings.workspace_ttl_ms,
        "auto_archive_days": settings.auto_archive_days,
        "retention_days": settings.retention_days,
        "running_chats_per_user_max": settings.running_chats_per_user_max,
    }


def user_settings_to_json(settings: settings_pb2.UserSettings) -> Json:
    """Convert the settings of one user."""
    return {
        "custom_prompt": settings.custom_prompt,
        "compaction_threshold_percents": dict(settings.compaction_threshold_percents),
    }


def new_model_to_proto(body: NewModel) -> model_pb2.Model:
    """Convert the body of a new model."""
    return model_pb2.Model(**_model_fields(given_fields(body)))


def model_patch_to_proto(
    body: ModelPatch, *, request_id: str, model_id: str, etag: str
) -> model_service_pb2.UpdateModelRequest:
    """Return the request that changes the fields of a patch."""
    fields = _model_fields(given_fields(body))
    return model_service_pb2.UpdateModelRequest(
        request_id=request_id,
        model=model_pb2.Model(id=model_id, etag=etag, **fields),
        update_mask=FieldMask(paths=list(fields)),
    )


def override_to_proto(purpose: int, body: NewOverride | None) -> model_pb2.ModelOverride:
    """Convert the model override of a purpose; None removes it."""
    override = model_pb2.ModelOverride(purpose=purpose)  # type: ignore[arg-type]
    if body is not None:
        override.model_id = body.model_id
        override.reasoning_effort = effort_to_proto(body.reasoning_effort)
    return override


def new_provider_to_proto(body: NewProvider) -> model_pb2.Provider:
    """Convert the body of a new provider."""
    return model_pb2.Provider(**_provider_fields(given_fields(body)))


def provider_patch_to_proto(
    body: ProviderPatch, *, request_id: str, provider_id: str, etag: str
) -> model_service_pb2.UpdateProviderRequest:
    """Return the request that changes the fields of a patch."""
    fields = _provider_fields(given_fields(body))
    paths = list(fields)
    key = fields.pop("key", None)
    return model_service_pb2.UpdateProviderRequest(
        request_id=request_id,
        provider=model_pb2.Provider(id=provider_id, etag=etag, **fields),
        update_mask=FieldMask(paths=paths),
        key=key,
    )


def installation_patch_to_proto(
    body: InstallationPatch, *, request_id: str
) -> settings_service_pb2.UpdateInstallationSettingsRequest:
    """Return the request that changes the settings of a patch."""
    fields = given_fields(body)
    return settings_service_pb2.UpdateInstallationSettingsRequest(
        request_id=request_id,
        settings=settings_pb2.InstallationSettings(**fields),
        update_mask=FieldMask(paths=list(fields)),
    )


def user_settings_patch_to_proto(
    body: UserSettingsPatch, *, request_id: str
) -> settings_service_pb2.UpdateUserSettingsRequest:
    """Return the request that changes the settings of a patch."""
    fields = given_fields(body)
    return settings_service_pb2.UpdateUserSettingsRequest(
        request_id=request_id,
        settings=settings_pb2.UserSettings(**fields),
        update_mask=FieldMask(paths=list(fields)),
    )


def _model_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert the fields of a body to those of the model proto."""
    for name in ("default_effort", "max_effort"):
        if name in fields:
            fields[name] = effort_to_proto(fields[name])
    if fields.get("prices") is not None:
        fields["prices"] = _prices_to_proto(fields["prices"])
    return _with_options(fields)


def _provider_fields(fields: dict[str, Any]) -> dict[str, Any]:
    kind = fields.get("type")
    if isinstance(kind, ProviderType):
        fields["type"] = model_pb2.ProviderType.Value(f"PROVIDER_TYPE_{kind.name}")
    return _with_options(fields)


def _with_options(fields: dict[str, Any]) -> dict[str, Any]:
    if "options" not in fields:
        return fields
    options = json_text(fields.pop("options"))
    return fields | {"options_json": options}


def _prices_to_proto(prices: PricesInput) -> model_pb2.Prices:
    return model_pb2.Prices(
        input=_decimal(prices.input),
        output=_decimal(prices.output),
        cache_read=_decimal(prices.cache_read),
        cache_write=_decimal(prices.cache_write),
    )


def _decimal(price: float | None) -> str:
    """Format a price in decimal digits as given, without an exponent; empty for None."""
    return "" if price is None else format(Decimal(str(price)).normalize(), "f")


def _prices_to_json(model: model_pb2.Model, name: str) -> Json | None:
    if not model.HasField(name):  # type: ignore[arg-type]
        return None
    prices: model_pb2.Prices = getattr(model, name)
    return {
        name: embedded_json(text) if text else None
        for name, text in (
            ("input", prices.input),
            ("output", prices.output),
            ("cache_read", prices.cache_read),
            ("cache_write", prices.cache_write),
        )
    }
