"""Tools of clients, as JSON text and back."""

import msgspec

from chatd.content.domain.tools import ClientTool

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[ClientTool, ...])


def tools_to_json(tools: tuple[ClientTool, ...]) -> str:
    """Return the stored form of client tools."""
    return _encoder.encode(tools).decode()


def tools_from_json(text: str) -> tuple[ClientTool, ...]:
    """Return the client tools of a stored form."""
    return () if text == "[]" else _decoder.decode(text)
