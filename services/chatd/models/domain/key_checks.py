"""Results of checks of a provider's keys."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyChecked:
    """The check result of one key; an empty problem means that it works."""

    key_id: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ProviderChecked:
    """The check results of a provider's keys, and the models that it lists."""

    keys: tuple[KeyChecked, ...]
    model_names: tuple[str, ...] = ()
