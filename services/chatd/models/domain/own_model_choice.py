"""Resolves users' own models: of chats without a chosen model, and of agents.

A model that cannot be used is skipped, so that a stored setting never fails a turn.
"""

from collections.abc import Callable, Collection

from chatd.models.domain.catalogue import Catalogue, Model, Purpose
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.own_model import INSTALLATION_DEFAULT, OwnMode, OwnModel
from chatd.models.domain.preferences import UserSettings
from chatd.models.domain.profile import NO_CHOICE, ModelChoice
from chatd.models.domain.resolution import usable_provider

# Is called with the id of each model that is skipped.
Skipped = Callable[[str], None]


def root_choice(
    wanted: ModelChoice,
    catalogue: Catalogue,
    settings: UserSettings,
    own_keys: Collection[str],
    skipped: Skipped,
) -> ModelChoice:
    """Return the choice of a turn of a root chat; without a model, the owner's own answers."""
    own = settings.root_model
    is_own = own.mode is OwnMode.MODEL and catalogue.settings.own_model_overrides_allowed
    if wanted.model_id or not is_own:
        return wanted
    if not _is_usable(own.model_id, catalogue, own_keys):
        skipped(own.model_id)
        return wanted
    return wanted.over(own.choice)


def agent_choice(
    catalogue: Catalogue,
    settings: UserSettings,
    own_keys: Collection[str],
    skipped: Skipped,
    *,
    is_explorer: bool,
) -> ModelChoice:
    """Return the model of an agent for which none is named; empty for that of its parent.

    The owner's own model takes precedence over the installation's for such agents.
    """
    own = settings.explore_model if is_explorer else settings.general_model
    if not catalogue.settings.own_model_overrides_allowed:
        own = INSTALLATION_DEFAULT
    for choice in _candidates(own, catalogue, is_explorer=is_explorer):
        if _is_usable(choice.model_id, catalogue, own_keys):
            return choice
        skipped(choice.model_id)
    return NO_CHOICE


def offered_models(
    catalogue: Catalogue, settings: UserSettings, own_keys: Collection[str]
) -> tuple[Model, ...]:
    """Return the models that a chat may name for its agents.

    Those that its owner hides are not among them, nor those that have no key for the owner.
    """
    return tuple(
        model
        for model in catalogue.models.values()
        if model.id not in settings.hidden_model_ids and _is_usable(model.id, catalogue, own_keys)
    )


def _candidates(
    own: OwnModel, catalogue: Catalogue, *, is_explorer: bool
) -> tuple[ModelChoice, ...]:
    """Return the configured models, the more specific one first."""
    if own.mode is OwnMode.CHAT_DEFAULT:
        return ()
    override = catalogue.overrides.get(Purpose.EXPLORE if is_explorer else Purpose.GENERAL)
    wanted = [own.choice] if own.mode is OwnMode.MODEL else []
    if override is not None:
        wanted.append(ModelChoice(override.model_id, override.reasoning_effort))
    return tuple(wanted)


def _is_usable(model_id: str, catalogue: Catalogue, own_keys: Collection[str]) -> bool:
    model = catalogue.models.get(model_id)
    if model is None:
        return False
    try:
        usable_provider(catalogue, model, own_keys)
    except ModelError:
        return False
    return True
