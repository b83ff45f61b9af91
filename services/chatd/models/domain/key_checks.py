"""What a provider said to its keys."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyChecked:
    """What a provider said to one key; no problem means that it works."""

    key_id: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ProviderChecked:
    """What a provider said to each key, and the models that it offers."""

    keys: tuple[KeyChecked, ...]
    model_names: tuple[str, ...] = ()
