import logging
from dataclasses import replace

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.tools import ClientTool, Executor, ToolSpec
from chatd.models.domain.catalogue import ModelOverride, Purpose
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.preferences import InstallationSettings, UserSettings
from chatd.models.domain.profile import ModelChoice, ReasoningEffort
from chatd.models.store.catalogue import ChatFacts, UserConfig
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.spend.domain.ledger import CallPurpose
from chatd.turns.domain.system_prompt import DEFAULT_INSTRUCTIONS, Mode, SystemPrompt
from chatd.turns.engine.setups import ConfiguredSetups, ConfiguredUtilityModels
from support.chatd.models.model_catalogue import BOOK, LLAMA, SONNET, KnownConfiguration, catalogue

CHAT = ChatId("c")
ANN = Owner(OwnerId("ann"), "member")


async def test_a_turn_runs_with_what_its_message_its_chat_its_owner_and_the_house_say() -> None:
    known = KnownConfiguration(
        replace(
            catalogue(replace(SONNET, threshold_percent=80)),
            settings=InstallationSettings(
                plan_mode_instructions="plan well", compact_on_final_step=False
            ),
        ),
        UserConfig(UserSettings("be brief", {"opus": 55})),
    )
    known.facts = ChatFacts(
        ModelChoice("opus", ReasoningEffort.HIGH),
        ChatMode.PLAN,
        (ClientTool("ask", "asks", "{}"),),
    )
    setup = await ConfiguredSetups(known, BOOK).prepare(CHAT, ANN, ModelChoice("sonnet"))
    assert (setup.model.id, setup.model.reasoning_effort) == ("sonnet", "high")
    assert (setup.threshold_percent, setup.is_final_step_compacted) == (80, False)
    assert setup.system_prompt == SystemPrompt(
        default_instructions=DEFAULT_INSTRUCTIONS,
        user_instructions="be brief",
        mode=Mode.PLAN,
        plan_instructions="plan well",
    )
    assert setup.client_tools == (ToolSpec("ask", "asks", "{}", Executor.CLIENT),)
    by_chat = await ConfiguredSetups(known, BOOK).prepare(CHAT, ANN)
    assert (by_chat.model.id, by_chat.threshold_percent) == ("opus", 55)
    assert by_chat.model.reasoning_effort == "medium"


@pytest.mark.parametrize(("chosen", "expected"), [("", "llama"), ("opus", "opus"), ("none", None)])
async def test_a_chat_has_the_fallback_model_of_the_house_another_one_or_none(
    chosen: str, expected: str | None
) -> None:
    house = InstallationSettings(fallback_model_id="llama")
    known = KnownConfiguration(replace(catalogue(LLAMA), settings=house))
    known.facts = ChatFacts(ModelChoice("sonnet"), ChatMode.ORDINARY, fallback_model_id=chosen)
    fallback = (await ConfiguredSetups(known, BOOK).prepare(CHAT, ANN)).fallback
    assert (None if fallback is None else fallback.id) == expected


async def test_a_summariser_that_cannot_be_used_is_replaced_by_the_chats_model_with_a_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    override = ModelOverride(Purpose.COMPACTION, "llama")
    for model, expected in ((LLAMA, "llama"), (replace(LLAMA, is_enabled=False), None)):
        known = replace(catalogue(model), overrides={override.purpose: override})
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            setup = await ConfiguredSetups(KnownConfiguration(known), BOOK).prepare(CHAT, ANN)
        found = None if setup.summariser is None else setup.summariser.id
        assert (found, bool(caplog.records)) == (expected, expected is None)


async def test_small_things_have_the_most_special_model_that_is_set() -> None:
    utility = ModelOverride(Purpose.UTILITY, "llama")
    title = ModelOverride(Purpose.TITLE, "opus", ReasoningEffort.LOW)
    known = replace(catalogue(), overrides={each.purpose: each for each in (utility, title)})
    models = ConfiguredUtilityModels(KnownConfiguration(known), BOOK)
    found = [
        await models.for_purpose(CHAT, ANN, purpose)
        for purpose in (CallPurpose.TITLE, CallPurpose.LABEL, CallPurpose.TURN)
    ]
    assert [None if each is None else each.id for each in found] == ["opus", "llama", None]
    assert found[0] is not None
    assert found[0].reasoning_effort == "low"


async def test_nothing_small_is_done_with_a_model_that_is_set_and_cannot_be_used() -> None:
    override = ModelOverride(Purpose.UTILITY, "llama")
    known = replace(
        catalogue(replace(LLAMA, is_enabled=False)), overrides={override.purpose: override}
    )
    with pytest.raises(ModelError):
        await ConfiguredUtilityModels(KnownConfiguration(known), BOOK).for_purpose(
            CHAT, ANN, CallPurpose.TITLE
        )
