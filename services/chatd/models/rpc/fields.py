"""Validates the fields of providers and models in requests."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import assert_never
from urllib.parse import SplitResult, urlsplit

from chatd.models.domain.catalogue import (
    ANTHROPIC_BASE_URL,
    OPENAI_BASE_URL,
    Model,
    ModelOverride,
    Provider,
    ProviderType,
)
from chatd.models.domain.price import Price
from chatd.models.domain.profile import THRESHOLD_PERCENT
from chatd.models.engine.target import fault_in_options
from chatd.models.rpc.convert import EFFORT_OF, PURPOSE_OF, TYPE_OF
from chatd.primitives.domain.errors import InvalidRequest, all_of
from chatd.primitives.rpc import fields
from parley.api.chat.v1 import model_pb2
from parley.http import Address, AddressInvalid

TOKENS_MAX = 100_000_000
PRICE_MAX = Decimal(1_000_000)

_PRICE = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,20})?")

# Types whose protocol has no default address.
ADDRESSED = frozenset({ProviderType.AZURE, ProviderType.OPENAI_COMPATIBLE})

PROVIDER_FIELDS = (
    "name",
    "display_name",
    "type",
    "base_url",
    "enabled",
    "user_keys_allowed",
    "options_json",
)
MODEL_FIELDS = (
    "name",
    "display_name",
    "enabled",
    "is_default",
    "context_limit_tokens",
    "output_limit_tokens",
    "compaction_threshold_percent",
    "default_effort",
    "max_effort",
    "prices",
    "options_json",
)

# Every region counts as AWS itself: regions are validated, so that no other host can be named.
AWS_ORIGIN = "https://amazonaws.com:443"


def masked(paths: Sequence[str], known: tuple[str, ...]) -> frozenset[str]:
    """Return which fields change.

    Raises:
        InvalidRequest: The mask is empty, or names a field that cannot be changed.
    """
    if not paths:
        raise InvalidRequest("update_mask", f"names no field; there are {', '.join(known)}")
    unknown = [path[:64] for path in paths if path not in known]
    if unknown:
        raise InvalidRequest(
            "update_mask", f"cannot change {', '.join(unknown)}; there are {', '.join(known)}"
        )
    return frozenset(paths)


def provider_with(
    provider: Provider, given: model_pb2.Provider, changed: frozenset[str]
) -> Provider:
    """Return a provider with the changed fields taken from a request.

    Raises:
        InvalidRequest: Some of them are invalid.
    """
    checks: Mapping[str, Callable[[], object]] = {
        "name": lambda: _provider_name(given.name),
        "type": lambda: _type(given.type),
        "base_url": lambda: base_url_of(given.base_url, "provider.base_url"),
        "options_json": lambda: options_of(given.options_json, "provider.options_json"),
    }
    all_of(check for name, check in checks.items() if name in changed)
    if "name" in changed:
        provider = replace(provider, name=given.name)
    if "display_name" in changed:
        provider = replace(provider, display_name=given.display_name.strip() or provider.name)
    if "type" in changed:
        provider = replace(provider, type=_type(given.type))
    if "base_url" in changed:
        provider = replace(provider, base_url=base_url_of(given.base_url, "provider.base_url"))
    if "options_json" in changed:
        options = options_of(given.options_json, "provider.options_json")
        provider = replace(provider, options=options)
    if "enabled" in changed:
        provider = replace(provider, is_enabled=given.enabled)
    if "user_keys_allowed" in changed:
        provider = replace(provider, user_keys_allowed=given.user_keys_allowed)
    if provider.type in ADDRESSED and not provider.base_url:
        raise InvalidRequest("provider.base_url", "is needed for this type of provider")
    return provider


def model_with(model: Model, given: model_pb2.Model, changed: frozenset[str]) -> Model:
    """Return a model with the changed fields taken from a request.

    Raises:
        InvalidRequest: Some of them are invalid.
    """
    window, longest = given.context_limit_tokens, given.output_limit_tokens
    checks: Mapping[str, Callable[[], object]] = {
        "name": lambda: _model_name(given.name),
        "options_json": lambda: options_of(given.options_json, "model.options_json"),
        "prices": lambda: price_from_proto(given.prices),
        "context_limit_tokens": lambda: _check_tokens(window, "model.context_limit_tokens"),
        "output_limit_tokens": lambda: _check_tokens(longest, "model.output_limit_tokens"),
    }
    all_of(check for name, check in checks.items() if name in changed)
    if "name" in changed:
        model = replace(model, name=_model_name(given.name))
    if "display_name" in changed:
        model = replace(model, display_name=given.display_name.strip() or model.name)
    if "options_json" in changed:
        model = replace(model, options=options_of(given.options_json, "model.options_json"))
    if "prices" in changed:
        model = replace(model, price=price_from_proto(given.prices))
    if "enabled" in changed:
        model = replace(model, is_enabled=given.enabled)
    if "is_default" in changed:
        model = replace(model, is_default=given.is_default)
    if "context_limit_tokens" in changed:
        model = replace(model, context_limit_tokens=window)
    if "output_limit_tokens" in changed:
        model = replace(model, output_limit_tokens=longest)
    if "compaction_threshold_percent" in changed:
        percent = given.compaction_threshold_percent or THRESHOLD_PERCENT
        model = replace(model, threshold_percent=percent)
    if "default_effort" in changed:
        model = replace(model, default_effort=EFFORT_OF[given.default_effort])
    if "max_effort" in changed:
        model = replace(model, max_effort=EFFORT_OF[given.max_effort])
    return model


def override_from_proto(override: model_pb2.ModelOverride) -> ModelOverride:
    """Return the override of a purpose; an empty model removes it."""
    purpose = PURPOSE_OF.get(override.purpose)
    if purpose is None:
        raise InvalidRequest("override.purpose", "is not known")
    effort = EFFORT_OF[override.reasoning_effort]
    return ModelOverride(purpose, override.model_id.strip(), effort)


def price_from_proto(prices: model_pb2.Prices) -> Price:
    """Return prices; an empty one is not set."""
    names = ("input", "output", "cache_read", "cache_write")
    return Price(
        *all_of(partial(_decimal, getattr(prices, name), f"model.prices.{name}") for name in names)
    )


def base_url_of(text: str, field: str) -> str:
    """Return an address without a trailing slash; empty stays empty."""
    url = text.strip().rstrip("/")
    if not url:
        return ""
    parts = _parts_of(url)
    if parts is None or not url.isprintable() or any(each.isspace() for each in url):
        raise InvalidRequest(field, "is not an address that begins with http:// or https://")
    if parts.username or parts.password:
        raise InvalidRequest(field, "holds a password; store it as a key instead")
    if parts.query or parts.fragment:
        raise InvalidRequest(field, "has more than a path; set the rest as options")
    return url


def options_of(text: str, field: str) -> Mapping[str, object]:
    """Return options, which are one JSON object; empty text means none."""
    if not text.strip():
        return {}
    value = fields.json_value(text, field)
    if not isinstance(value, dict):
        raise InvalidRequest(field, "is not a JSON object")
    if (fault := fault_in_options(value)) is not None:
        raise InvalidRequest(field, fault)
    return value


def version_of(etag: str, field: str) -> int | None:
    """Return the version of an etag; None if it is empty."""
    if not etag:
        return None
    if not etag.isascii() or not etag.isdigit() or len(etag) > 18:
        raise InvalidRequest(field, "is not an etag of a previous answer")
    return int(etag)


def _provider_name(name: str) -> str:
    if not name:
        raise InvalidRequest("provider.name", "is empty")
    return name


def _model_name(text: str) -> str:
    name = text.strip()
    if not name or not name.isprintable():
        raise InvalidRequest("model.name", "is not the name of a model")
    return name


def _type(value: "model_pb2.ProviderType.ValueType") -> ProviderType:
    kind = TYPE_OF.get(value)
    if kind is None or kind is ProviderType.SCRIPTED:
        raise InvalidRequest("provider.type", "is not known, or is the demo's")
    return kind


def _check_tokens(number: int, field: str) -> None:
    if number > TOKENS_MAX:
        raise InvalidRequest(field, f"is more than {TOKENS_MAX}")


def _decimal(text: str, field: str) -> Decimal | None:
    if not text:
        return None
    is_decimal = _PRICE.fullmatch(text) is not None
    price = Decimal(text) if is_decimal else None
    if price is None or price > PRICE_MAX:
        raise InvalidRequest(
            field, f'is not a price from 0 to {PRICE_MAX} US dollars, such as "3.75"'
        )
    return price


def _parts_of(url: str) -> SplitResult | None:
    """Return the parts of an http or https URL, else None."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # Raises when it is no number.
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None


def key_origin(provider: Provider) -> str:
    """Return the origin that keys of a provider are sent to, as `https://host:port`; or empty."""
    if provider.base_url:
        return _origin(provider.base_url)
    match provider.type:
        case ProviderType.ANTHROPIC:
            return _origin(ANTHROPIC_BASE_URL)
        case ProviderType.OPENAI:
            return _origin(OPENAI_BASE_URL)
        case ProviderType.BEDROCK:
            return AWS_ORIGIN
        case ProviderType.OPENAI_COMPATIBLE | ProviderType.AZURE | ProviderType.SCRIPTED:
            return ""
        case _:
            assert_never(provider.type)


def _origin(url: str) -> str:
    try:
        address, _ = Address.read(url)
    except AddressInvalid:
        return url  # Nothing can be sent there, so it equals no other URL's origin.
    return address.origin
