"""The origin (scheme, host and port) that the keys of a provider are sent to."""

from typing import assert_never

from chatd.models.domain.catalogue import (
    ANTHROPIC_BASE_URL,
    OPENAI_BASE_URL,
    Provider,
    ProviderType,
)
from parley.http import Address, AddressInvalid

# Every region counts as AWS itself: regions are validated, so that no other host can be named.
AWS_ORIGIN = "https://amazonaws.com:443"


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
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'https' if address.is_secure else 'http'}://{host}:{address.port}"
