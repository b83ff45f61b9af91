"""The Chat Completions wire format: OpenAI, Azure and compatible endpoints."""

from chatd.providers.completions.decoder import CompletionsDecoder
from chatd.providers.completions.wire import CompletionsWire

__all__ = ["CompletionsDecoder", "CompletionsWire"]
