"""Resolves the model of a turn, its reasoning effort, limits and prices."""

from collections.abc import Collection
from dataclasses import dataclass

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import Catalogue, Model, Provider, Purpose
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.price import Price
from chatd.models.domain.price_book import BookEntry, PriceBook
from chatd.models.domain.profile import NO_CHOICE, ModelChoice, ModelProfile, ReasoningEffort

OUTPUT_TOKENS_MAX = 32_000
TOOLS = "tools"  # The option that says whether a model takes tools.
CHOOSE_ANOTHER = (
    "choose another one for the chat or with the next message, or take the choice away and the "
    "default answers."
)
ORDER = tuple(effort for effort in ReasoningEffort if effort is not ReasoningEffort.DEFAULT)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A usable model, with its provider and reasoning effort."""

    model: Model
    provider: Provider
    effort: ReasoningEffort


def resolve(
    catalogue: Catalogue,
    choice: ModelChoice,
    book: PriceBook,
    own_keys: Collection[str] = (),
) -> Resolved:
    """Return the model that answers a message.

    A chosen model is never replaced; where none was chosen the default answers.

    Args:
        catalogue: The catalogue.
        choice: The choice of the message, or else of its chat.
        book: The source of limits that are not configured.
        own_keys: The providers that the user has own keys for.

    Raises:
        ModelError: The model was removed or disabled, there is no key for it, or there is no
            default.
    """
    model = catalogue.models.get(choice.model_id) if choice.model_id else catalogue.default()
    if model is None:
        raise unknown_model(choice.model_id) if choice.model_id else _no_default()
    provider = usable_provider(catalogue, model, own_keys)
    effort = clamped(choice.reasoning_effort, model, book.find(model.name))
    return Resolved(model, provider, effort)


def unknown_model(model_id: str) -> ModelError:
    """Return the error of a turn whose model is unknown."""
    message = f"The model {model_id} is not known here any more; {CHOOSE_ANOTHER}"
    return _unusable(ErrorKind.MODEL_UNAVAILABLE, message, None)


def usable_provider(catalogue: Catalogue, model: Model, own_keys: Collection[str] = ()) -> Provider:
    """Return the provider of a usable model.

    Raises:
        ModelError: The model or the provider is disabled or deleted, or there is no key.
    """
    provider = catalogue.providers.get(model.provider_id)
    if model.is_deleted or provider is None or provider.is_deleted:
        message = f"The model {model.display_name} was removed; {CHOOSE_ANOTHER}"
        raise _unusable(ErrorKind.MODEL_UNAVAILABLE, message, provider)
    if not model.is_enabled:
        message = f"The model {model.display_name} is switched off; {CHOOSE_ANOTHER}"
        raise _unusable(ErrorKind.MODEL_UNAVAILABLE, message, provider)
    if not provider.is_enabled:
        message = (
            f"{provider.display_name} is switched off; choose a model of another provider, "
            "or ask an administrator to switch it on."
        )
        raise _unusable(ErrorKind.PROVIDER_DISABLED, message, provider)
    is_own_enough = provider.user_keys_allowed and provider.id in own_keys
    if provider.needs_key and not provider.keys and not is_own_enough:
        way = "add a key of your own" if provider.user_keys_allowed else "choose another model"
        message = (
            f"There is no key for {provider.display_name}; {way}, or ask an administrator to add "
            "one."
        )
        raise _unusable(ErrorKind.MISSING_KEY, message, provider)
    return provider


def for_purpose(
    catalogue: Catalogue,
    purposes: tuple[Purpose, ...],
    book: PriceBook,
    own_keys: Collection[str] = (),
) -> Resolved | None:
    """Return the first usable model that is configured for one of the purposes, else None."""
    for purpose in purposes:
        override = catalogue.overrides.get(purpose)
        model = None if override is None else catalogue.models.get(override.model_id)
        if override is None or model is None:
            continue
        try:
            provider = usable_provider(catalogue, model, own_keys)
        except ModelError:
            continue
        effort = clamped(override.reasoning_effort, model, book.find(model.name))
        return Resolved(model, provider, effort)
    return None


def clamped(
    wanted: ReasoningEffort, model: Model, entry: BookEntry | None = None
) -> ReasoningEffort:
    """Return the reasoning effort: as requested or by default, at most the model's maximum.

    A model without a known maximum gets none.
    """
    highest = model.max_effort or (entry.max_effort if entry else ReasoningEffort.DEFAULT)
    effort = wanted or model.default_effort
    if not highest or not effort:
        return ReasoningEffort.DEFAULT
    return min(effort, highest, key=ORDER.index)


def profile_of(resolved: Resolved, book: PriceBook) -> ModelProfile:
    """Return the model as a turn uses it."""
    model, entry = resolved.model, book.find(resolved.model.name)
    known_output = 0 if entry is None else entry.output_limit_tokens
    output = model.output_limit_tokens or min(OUTPUT_TOKENS_MAX, known_output or OUTPUT_TOKENS_MAX)
    window = model.context_limit_tokens or (0 if entry is None else entry.context_limit_tokens)
    return ModelProfile(
        id=model.id,
        context_limit_tokens=window,
        price=price_of(model, entry),
        output_tokens_max=output,
        reasoning_effort=resolved.effort,
        provider=resolved.provider.name,
        provider_id=resolved.provider.id,
        name=model.name,
        takes_tools=({**resolved.provider.options, **model.options}.get(TOOLS) is not False),
    )


def price_of(model: Model, entry: BookEntry | None) -> Price | None:
    """Return the prices of a model: an administrator's, else the book's; None if there are none."""
    own, shipped = model.price, Price() if entry is None else entry.price
    price = Price(
        input=shipped.input if own.input is None else own.input,
        output=shipped.output if own.output is None else own.output,
        cache_read=shipped.cache_read if own.cache_read is None else own.cache_read,
        cache_write=shipped.cache_write if own.cache_write is None else own.cache_write,
    )
    return None if price == Price() else price


def turn_choice(asked: ModelChoice | None, chat: ModelChoice) -> ModelChoice:
    """Return the choice of a turn: its message's, completed by its chat's."""
    return (asked or NO_CHOICE).over(chat)


def _no_default() -> ModelError:
    message = (
        "No model is the default; choose one for the chat, or ask an administrator to make one "
        "the default."
    )
    return _unusable(ErrorKind.CONFIG, message, None)


def _unusable(kind: ErrorKind, message: str, provider: Provider | None) -> ModelError:
    name = "" if provider is None else provider.display_name
    return ModelError(kind, message, is_retryable=False, provider=name)
