"""Unwraps Anthropic's events from Bedrock's: each is base64 in a JSON field."""

import base64
import binascii
from collections.abc import Iterable

import msgspec

from chatd.models.domain.language_model import ModelEvent
from chatd.providers.anthropic import AnthropicDecoder
from chatd.providers.wire import Failure, ProviderFailed


class _Chunk(msgspec.Struct):
    bytes: str | None = None


_CHUNK = msgspec.json.Decoder(_Chunk)


class BedrockDecoder:
    """Decodes the payloads of frames, which contain Anthropic's events."""

    def __init__(self) -> None:
        self._inner = AnthropicDecoder()

    def decode(self, data: bytes) -> Iterable[ModelEvent]:
        """Return the model events of one frame's payload."""
        try:
            chunk = _CHUNK.decode(data)
            event = b"" if chunk.bytes is None else base64.b64decode(chunk.bytes, validate=True)
        except (ValueError, RecursionError, binascii.Error):
            text = "the event stream holds a frame that cannot be read"
            raise ProviderFailed(Failure(text, is_garbled=True)) from None
        return self._inner.decode(event) if event else ()

    def end(self) -> Iterable[ModelEvent]:
        """Return nothing if the answer was complete."""
        return self._inner.end()
