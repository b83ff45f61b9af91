"""Stored keys of providers: check results, and the effect of provider changes on them.

A key was entered for one origin. To be sent to another one, it must be entered again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from chatd.models.domain.catalogue import Provider
from chatd.models.domain.errors import KeyNeeded, KeyOrderMismatch


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


def check_key_order(
    provider_id: str, stored_ids: Sequence[str], ordered_ids: Sequence[str]
) -> None:
    """Check that an order names each stored key once.

    Raises:
        KeyOrderMismatch: A key is named twice, is not there, or is left out.
    """
    stored, seen = frozenset(stored_ids), set[str]()
    problems: dict[str, str] = {}
    for index, key_id in enumerate(ordered_ids):
        if key_id not in stored:
            problems[f"key_ids[{index}]"] = "is no key of the installation at this provider"
        elif key_id in seen:
            problems[f"key_ids[{index}]"] = "is named before already"
        seen.add(key_id)
    left_out = [each for each in stored_ids if each not in seen]
    if left_out:
        problems["key_ids"] = f"leaves out {', '.join(left_out)}"
    if problems:
        raise KeyOrderMismatch(provider_id, problems)


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
