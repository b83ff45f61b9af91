"""A model that a chat may name for its agents, as it is described to the model of the chat."""

from dataclasses import dataclass

from chatd.models.domain.catalogue import Catalogue, Model
from chatd.models.domain.price_book import PriceBook
from chatd.models.domain.profile import ReasoningEffort
from chatd.models.domain.resolution import ORDER


@dataclass(frozen=True, slots=True)
class AgentModel:
    """A model of agents.

    Attributes:
        name: The name by which it is chosen.
        context_limit_tokens: The size of its window; 0 if that is not known.
        is_default: Whether it answers where no model is named.
        reasoning_efforts: The efforts that it can be given; none for a model that has none.
    """

    name: str
    display_name: str
    context_limit_tokens: int = 0
    is_default: bool = False
    reasoning_efforts: tuple[ReasoningEffort, ...] = ()


def agent_model(model: Model, catalogue: Catalogue, book: PriceBook) -> AgentModel:
    """Return a model of the catalogue as a model of agents."""
    entry, default = book.find(model.name), catalogue.default()
    highest = model.max_effort or (ReasoningEffort.DEFAULT if entry is None else entry.max_effort)
    return AgentModel(
        catalogue.reference_of(model.id),
        model.display_name or model.name,
        model.context_limit_tokens or (0 if entry is None else entry.context_limit_tokens),
        default is not None and default.id == model.id,
        ORDER[: ORDER.index(highest) + 1] if highest else (),
    )
