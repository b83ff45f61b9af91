"""Metadata that this format sends back with a part: stored when decoded, read when replayed.

It has its own key in a part's metadata, so that no format reads that of another.
"""

from typing import Any

import msgspec


class ItemOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The item of an answer that a part comes from.

    Attributes:
        id: The item's id at the provider.
        encrypted_content: Reasoning that only the provider can read.
        phase: Whether a text is commentary or the final answer.
        is_refusal: Whether the text is a refusal.
        item: The item of a provider-executed tool, without its output, or one that only the
            provider understands.
    """

    id: str = ""
    encrypted_content: str = ""
    phase: str = ""
    is_refusal: bool = False
    item: dict[str, Any] | None = None  # JSON of the provider, sent back unchanged.


class _Metadata(msgspec.Struct, frozen=True):
    openai: ItemOrigin | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Metadata)


def encoded_origin(origin: ItemOrigin) -> str:
    """Return an origin as a part's metadata; empty for an empty one."""
    return "" if origin == ItemOrigin() else _encoder.encode(_Metadata(origin)).decode()


def item_origin_of(provider_metadata: str) -> ItemOrigin | None:
    """Return the origin in a part's metadata; None if there is none."""
    if not provider_metadata:
        return None
    try:
        return _decoder.decode(provider_metadata).openai
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
