"""What this protocol wants back with a part: written when it is decoded, read when it is replayed.

It lies under our own name in a part's metadata, so that nobody reads another protocol's.
"""

from typing import Any

import msgspec


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which item of an answer a part comes from.

    Attributes:
        id: The item's id at the provider.
        encrypted_content: A thought that only the provider can read.
        phase: Whether a text comments on the work or is the answer to it.
        is_refusal: The text says that the model will not answer.
        item: The item of a tool that the provider ran, without what came out of it, or one that
            only the provider understands.
    """

    id: str = ""
    encrypted_content: str = ""
    phase: str = ""
    is_refusal: bool = False
    item: dict[str, Any] | None = None  # JSON of the provider's, sent back as it came.


class _Metadata(msgspec.Struct, frozen=True):
    openai: Mark | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Metadata)


def written(mark: Mark) -> str:
    """Return a mark as a part's metadata; nothing if it says nothing."""
    return "" if mark == Mark() else _encoder.encode(_Metadata(mark)).decode()


def mark_of(provider_metadata: str) -> Mark | None:
    """Return our mark in a part's metadata, None if there is none."""
    if not provider_metadata:
        return None
    try:
        return _decoder.decode(provider_metadata).openai
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
