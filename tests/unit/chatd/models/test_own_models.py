"""Users' own models of chats without a chosen model, and of agents."""

from dataclasses import replace

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.models.domain.agent_model import AgentModel, agent_model
from chatd.models.domain.catalogue import Catalogue, Model, ModelOverride, Provider, Purpose
from chatd.models.domain.own_model import CHAT_DEFAULT, INSTALLATION_DEFAULT, OwnMode, OwnModel
from chatd.models.domain.own_model_choice import agent_choice, offered_models
from chatd.models.domain.preferences import InstallationSettings, UserSettings
from chatd.models.domain.profile import NO_CHOICE, ModelChoice, ReasoningEffort
from chatd.models.engine.agent_models import ConfiguredAgentModels
from chatd.models.store.catalogue import ChatFacts, UserConfig
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.turns.engine.setups import ConfiguredSetups
from support.chatd.models.model_catalogue import BOOK, LLAMA, KnownConfiguration, catalogue

CHAT = ChatId("c")
ANN = Owner(OwnerId("ann"), "member")
OWN = OwnModel(OwnMode.MODEL, "opus", ReasoningEffort.LOW)
OFF = replace(LLAMA, is_enabled=False)


async def answering(
    known: Catalogue, facts: ChatFacts, asked: ModelChoice = NO_CHOICE
) -> tuple[str, str]:
    """Return the model and the effort of a turn of Ann, who has an own model."""
    configuration = KnownConfiguration(known, UserConfig(UserSettings(root_model=OWN)))
    configuration.facts = facts
    model = (await ConfiguredSetups(configuration, BOOK).prepare(CHAT, ANN, asked)).model
    return model.id, model.reasoning_effort


def chat(choice: ModelChoice = NO_CHOICE, *ancestor_ids: ChatId) -> ChatFacts:
    return ChatFacts(choice, ChatMode.ORDINARY, ancestor_ids=ancestor_ids)


async def test_a_chat_for_which_no_model_was_chosen_has_the_own_model_of_its_owner() -> None:
    assert await answering(catalogue(), chat()) == ("opus", "low")
    medium = ModelChoice(reasoning_effort=ReasoningEffort.MEDIUM)
    assert await answering(catalogue(), chat(medium)) == ("opus", "medium")
    assert await answering(catalogue(), chat(ModelChoice("llama"))) == ("llama", "")
    assert await answering(catalogue(), chat(), ModelChoice("sonnet")) == ("sonnet", "")
    # An agent has the model that it was started with.
    assert (await answering(catalogue(), chat(NO_CHOICE, ChatId("p"))))[0] == "sonnet"


async def test_an_own_model_that_cannot_be_used_or_is_not_allowed_is_no_error() -> None:
    own_is_off = catalogue(replace(catalogue().models["opus"], is_enabled=False))
    assert (await answering(own_is_off, chat()))[0] == "sonnet"
    forbidden = replace(
        catalogue(), settings=InstallationSettings(own_model_overrides_allowed=False)
    )
    assert (await answering(forbidden, chat()))[0] == "sonnet"


@pytest.mark.parametrize(
    ("own", "changed", "is_allowed", "expected", "skipped"),
    [
        (OWN, LLAMA, True, OWN.choice, []),
        (INSTALLATION_DEFAULT, LLAMA, True, ModelChoice("llama"), []),
        (CHAT_DEFAULT, LLAMA, True, NO_CHOICE, []),
        (OWN, LLAMA, False, ModelChoice("llama"), []),
        (CHAT_DEFAULT, LLAMA, False, ModelChoice("llama"), []),
        (OwnModel(OwnMode.MODEL, "gone"), LLAMA, True, ModelChoice("llama"), ["gone"]),
        (OwnModel(OwnMode.MODEL, "gone"), OFF, True, NO_CHOICE, ["gone", "llama"]),
    ],
)
def test_the_model_of_an_agent_is_its_owners_else_the_installations_else_its_parents(
    own: OwnModel,
    changed: Model | Provider,
    is_allowed: bool,
    expected: ModelChoice,
    skipped: list[str],
) -> None:
    known = replace(
        catalogue(changed),
        overrides={Purpose.GENERAL: ModelOverride(Purpose.GENERAL, "llama")},
        settings=InstallationSettings(own_model_overrides_allowed=is_allowed),
    )
    told: list[str] = []
    settings = UserSettings(general_model=own)
    assert agent_choice(known, settings, (), told.append, is_explorer=False) == expected
    assert told == skipped
    assert agent_choice(known, settings, (), told.append, is_explorer=True) == NO_CHOICE


def test_agents_may_have_the_models_that_their_owner_can_use_and_does_not_hide() -> None:
    def offered(known: Catalogue, *hidden_model_ids: str) -> list[str]:
        settings = UserSettings(hidden_model_ids=hidden_model_ids)
        return [each.id for each in offered_models(known, settings, ())]

    everything = offered(catalogue(LLAMA))
    assert {"sonnet", "opus", "llama"} <= set(everything)
    assert offered(catalogue(LLAMA), "opus") == [each for each in everything if each != "opus"]
    assert offered(catalogue(OFF)) == [each for each in everything if each != "llama"]
    provider = catalogue().providers[catalogue().models["opus"].provider_id]
    without_key = offered(catalogue(LLAMA, replace(provider, keys=())))
    assert "opus" not in without_key


async def test_a_model_of_agents_is_found_by_its_id_its_name_and_its_name_with_its_provider() -> (
    None
):
    known = catalogue(LLAMA)
    models = ConfiguredAgentModels(KnownConfiguration(known, UserConfig()), BOOK)
    long_name = known.reference_of("opus")
    assert long_name in await models.names(ANN.id)
    for reference in ("opus", known.models["opus"].name, long_name):
        assert await models.named(ANN.id, reference) == "opus"
    assert await models.named(ANN.id, "nothing") == ""
    assert (await models.name_of("opus"), await models.name_of("gone")) == (long_name, "gone")


async def test_a_model_of_agents_is_described_with_its_window_and_its_efforts() -> None:
    known = catalogue(LLAMA)
    models = ConfiguredAgentModels(KnownConfiguration(known, UserConfig()), BOOK)
    described = {each.name: each for each in await models.described(ANN.id)}
    assert tuple(described) == await models.names(ANN.id)
    llama = described[known.reference_of("llama")]
    assert (llama.display_name, llama.reasoning_efforts) == ("Llama", ())
    limited = replace(
        known.models["opus"], context_limit_tokens=9000, max_effort=ReasoningEffort.LOW
    )
    assert agent_model(limited, known, BOOK) == AgentModel(
        known.reference_of("opus"),
        limited.display_name or limited.name,
        9000,
        is_default=known.default() == known.models["opus"],
        reasoning_efforts=(ReasoningEffort.NONE, ReasoningEffort.MINIMAL, ReasoningEffort.LOW),
    )
