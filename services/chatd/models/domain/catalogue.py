"""Providers and models as values.

Deleted ones stay in the catalogue, marked as such: their messages keep their identity.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from chatd.models.domain.preferences import InstallationSettings
from chatd.models.domain.price import Price
from chatd.models.domain.profile import THRESHOLD_PERCENT, ReasoningEffort

ANTHROPIC_BASE_URL = "https://api.anthropic.com"
OPENAI_BASE_URL = "https://api.openai.com/v1"

DEMO_PROVIDER_ID = "scripted"
DEMO_MODEL_ID = "scripted"


class ProviderType(StrEnum):
    """The kind of an endpoint, by its protocol."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    OPENAI_COMPATIBLE = "openai_compatible"
    AZURE = "azure"
    BEDROCK = "bedrock"
    SCRIPTED = "scripted"


# Local endpoints often need no key; the demo has none.
KEYLESS = frozenset({ProviderType.OPENAI_COMPATIBLE, ProviderType.SCRIPTED})


class Purpose(StrEnum):
    """A use of models that may have its own model."""

    UTILITY = "utility"
    TITLE = "title"
    COMPACTION = "compaction"
    ADVISOR = "advisor"
    GENERAL = "general"
    EXPLORE = "explore"


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """A key of a provider without its value; one without a user belongs to the installation."""

    id: str
    provider_id: str
    hint: str  # Its last four characters.
    user_id: str = ""
    order: int = 1
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """An endpoint that serves models.

    Attributes:
        base_url: Address without a trailing slash; empty for the protocol's own.
        options: Administrator options for all of its models.
        keys: The installation's keys in the order in which they are tried.
        version: Grows with every change.
        is_given: Whether it comes from the environment or with Parley, so that it cannot be
            changed.
    """

    id: str
    name: str
    display_name: str
    type: ProviderType
    base_url: str = ""
    is_enabled: bool = True
    user_keys_allowed: bool = False
    options: Mapping[str, object] = field(default_factory=dict)
    keys: tuple[ProviderKey, ...] = ()
    created_at: datetime | None = None
    version: int = 1
    is_deleted: bool = False
    is_given: bool = False

    @property
    def needs_key(self) -> bool:
        """Return whether calls need a key."""
        return self.type not in KEYLESS


@dataclass(frozen=True, slots=True)
class Model:
    """A model as it is configured; values of 0, empty or None come from the price book.

    Attributes:
        name: The provider's name of it.
        is_default: Whether it answers where no model is named.
        context_limit_tokens: Size of its context window.
        output_limit_tokens: Tokens of its longest answer.
        threshold_percent: How full its context may be before the history is summarised; 100 never.
        default_effort: The reasoning effort unless another one is requested.
        max_effort: The highest allowed reasoning effort.
    """

    id: str
    provider_id: str
    name: str
    display_name: str
    is_enabled: bool = True
    is_default: bool = False
    context_limit_tokens: int = 0
    output_limit_tokens: int = 0
    threshold_percent: int = THRESHOLD_PERCENT
    default_effort: ReasoningEffort = ReasoningEffort.DEFAULT
    max_effort: ReasoningEffort = ReasoningEffort.DEFAULT
    price: Price = field(default_factory=Price)
    options: Mapping[str, object] = field(default_factory=dict)
    version: int = 1
    is_deleted: bool = False
    is_given: bool = False


@dataclass(frozen=True, slots=True)
class ModelOverride:
    """The model of one purpose."""

    purpose: Purpose
    model_id: str
    reasoning_effort: ReasoningEffort = ReasoningEffort.DEFAULT


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All providers and models of an installation, at one moment.

    Attributes:
        providers: By id.
        models: By id, in the order in which they are listed.
        overrides: By purpose.
        given_default_id: The model that the environment names as the default; empty for none.
        settings: The settings of the installation.
        version: Grows with every change of any of it.
    """

    providers: Mapping[str, Provider] = field(default_factory=dict)
    models: Mapping[str, Model] = field(default_factory=dict)
    overrides: Mapping[Purpose, ModelOverride] = field(default_factory=dict)
    given_default_id: str = ""
    settings: InstallationSettings = field(default_factory=InstallationSettings)
    version: int = 0

    def is_usable(self, model: Model) -> bool:
        """Return whether neither the model nor its provider is disabled or deleted."""
        provider = self.providers.get(model.provider_id)
        return (
            model.is_enabled
            and not model.is_deleted
            and provider is not None
            and provider.is_enabled
            and not provider.is_deleted
        )

    def default(self) -> Model | None:
        """Return the model that answers where none is named.

        An administrator's choice takes precedence over the environment's; without both it is the
        demo. A model that an administrator adds is not the default until it is set as such.
        """
        live = [model for model in self.models.values() if not model.is_deleted]
        for model in live:
            if model.is_default:
                return model
        if self.given_default_id in self.models:
            return self.models[self.given_default_id]
        usable = [model for model in live if model.is_given and self.is_usable(model)]
        real = [model for model in usable if model.id != DEMO_MODEL_ID]
        return next(iter(real or usable), None)

    def find(self, reference: str) -> Model | None:
        """Return the usable model of an id or a name; None if there is none, or several.

        A name may have its provider before a slash.
        """
        model = self.models.get(reference)
        if model is not None:
            return model if self.is_usable(model) else None
        usable = [each for each in self.models.values() if self.is_usable(each)]
        for names in (self._long_name, lambda each: each.name):
            found = [each for each in usable if names(each) == reference]
            if len(found) == 1:
                return found[0]
        return None

    def provider_of(self, model_id: str) -> str:
        """Return the id of the provider that serves or served a model; empty if unknown."""
        model = self.models.get(model_id)
        return "" if model is None else model.provider_id

    def reference_of(self, model_id: str) -> str:
        """Return the name by which `find` finds a model; empty if it is unknown."""
        model = self.models.get(model_id)
        is_known = model is not None and model.provider_id in self.providers
        return self._long_name(model) if model is not None and is_known else ""

    def names_of(self, model_id: str) -> tuple[str, str] | None:
        """Return the names for people of a model and its provider, deleted ones included."""
        model = self.models.get(model_id)
        provider = None if model is None else self.providers.get(model.provider_id)
        if model is None or provider is None:
            return None
        return model.display_name or model.name, provider.display_name or provider.name

    def _long_name(self, model: Model) -> str:
        return f"{self.providers[model.provider_id].name}/{model.name}"


def merged(stored: Catalogue, given: Catalogue) -> Catalogue:
    """Return the stored catalogue merged with the given one; administrator settings win."""
    return Catalogue(
        providers={**given.providers, **stored.providers},
        models={**stored.models, **given.models},
        overrides={**given.overrides, **stored.overrides},
        given_default_id=given.given_default_id,
        settings=stored.settings,
        version=stored.version,
    )


DEMO = Catalogue(
    providers={
        DEMO_PROVIDER_ID: Provider(
            DEMO_PROVIDER_ID, "scripted", "Demo", ProviderType.SCRIPTED, is_given=True
        )
    },
    models={
        DEMO_MODEL_ID: Model(
            DEMO_MODEL_ID,
            DEMO_PROVIDER_ID,
            "scripted",
            "Scripted demo",
            price=Price(),
            is_given=True,
        )
    },
)
