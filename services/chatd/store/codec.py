"""Parts and errors to JSON text and back, as the columns hold them."""

import msgspec

from chatd.domain.chat import TurnError
from chatd.domain.parts import Part

_parts_encoder = msgspec.json.Encoder()
_parts_decoder = msgspec.json.Decoder(tuple[Part, ...])
_error_decoder = msgspec.json.Decoder(TurnError)


def parts_to_json(parts: tuple[Part, ...]) -> str:
    """Return the stored form of a message's content."""
    return _parts_encoder.encode(parts).decode()


def parts_from_json(text: str) -> tuple[Part, ...]:
    """Return the parts of a stored content."""
    return _parts_decoder.decode(text)


def error_to_json(error: TurnError | None) -> str | None:
    """Return the stored form of a turn's error."""
    return None if error is None else msgspec.json.encode(error).decode()


def error_from_json(text: str | None) -> TurnError | None:
    """Return the error of a stored form."""
    return None if text is None else _error_decoder.decode(text)
