"""Stored keys of providers: check results, and the effect of provider changes on them.

A key was entered for one origin. To be sent to another one, it must be entered again.
"""

from dataclasses import dataclass
from enum import StrEnum

from chatd.models.domain.catalogue import Provider
from chatd.models.domain.errors import KeyNeeded


class KeyEffect(StrEnum):
    """Which stored keys are removed with a change."""

    KEEP = "keep"
    REMOVE_SHARED = "remove_shared"  # The installation's; those of users stay.
    REMOVE_ALL = "remove_all"


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """The changed provider, and which of its stored keys are removed."""

    provider: Provider
    keys: KeyEffect = KeyEffect.KEEP


def effect_on_keys(
    *, old_origin: str, new_origin: str, stored_keys: int, is_key_given: bool
) -> KeyEffect:
    """Return which stored keys a change removes.

    Raises:
        KeyNeeded: It would send stored keys to another origin, and no key is given.
    """
    is_moved = old_origin != new_origin
    if is_moved and stored_keys and not is_key_given:
        raise KeyNeeded(old_origin, new_origin)
    if is_moved:
        return KeyEffect.REMOVE_ALL
    return KeyEffect.REMOVE_SHARED if is_key_given else KeyEffect.KEEP


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
