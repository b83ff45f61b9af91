"""JSON encoding of the usage of a call."""

import msgspec

from chatd.models.domain.price import ModelUse

_encoder = msgspec.json.Encoder()
_use_decoder = msgspec.json.Decoder(ModelUse)


def use_to_json(use: ModelUse | None) -> str | None:
    """Encode the usage of a model call as stored."""
    return None if use is None else _encoder.encode(use).decode()


def use_from_json(text: str | None) -> ModelUse | None:
    """Decode the stored usage of a model call."""
    return None if text is None else _use_decoder.decode(text)
