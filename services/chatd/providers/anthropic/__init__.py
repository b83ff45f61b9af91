"""The Anthropic Messages wire format: encoding of requests, decoding of streamed answers."""

from chatd.providers.anthropic.decoder import AnthropicDecoder
from chatd.providers.anthropic.options import Options, options_of
from chatd.providers.anthropic.request import body_of, encoded
from chatd.providers.anthropic.wire import AnthropicWire, caller_headers, extra_headers

__all__ = [
    "AnthropicDecoder",
    "AnthropicWire",
    "Options",
    "body_of",
    "caller_headers",
    "encoded",
    "extra_headers",
    "options_of",
]
