"""The wire format of OpenAI's Responses: encoding of requests, decoding of streams."""

from chatd.providers.responses.decoder import ResponsesDecoder
from chatd.providers.responses.request import ResponsesWire

__all__ = ["ResponsesDecoder", "ResponsesWire"]
