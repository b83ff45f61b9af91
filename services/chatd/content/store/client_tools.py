"""JSON encoding of client tools."""

import msgspec

from chatd.content.domain.tools import ClientTool

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[ClientTool, ...])


def tools_to_json(tools: tuple[ClientTool, ...]) -> str:
    """Encode client tools as stored."""
    return _encoder.encode(tools).decode()


def tools_from_json(text: str) -> tuple[ClientTool, ...]:
    """Decode stored client tools."""
    return () if text == "[]" else _decoder.decode(text)
