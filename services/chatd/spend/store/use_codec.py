"""What a call used, as JSON text and back."""

import msgspec

from chatd.models.domain.model_use import ModelUse

_encoder = msgspec.json.Encoder()
_use_decoder = msgspec.json.Decoder(ModelUse)


def use_to_json(use: ModelUse | None) -> str | None:
    """Return the stored form of what a model call used."""
    return None if use is None else _encoder.encode(use).decode()


def use_from_json(text: str | None) -> ModelUse | None:
    """Return what a model call used."""
    return None if text is None else _use_decoder.decode(text)
