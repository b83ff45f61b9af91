"""Settings of the installation and of users, over gRPC and stored in PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chatd.models.domain.catalogue import Purpose
from chatd.primitives.domain.ids import OwnerId
from parley.api.chat.v1 import chat_pb2, settings_pb2
from parley.api.chat.v1 import settings_service_pb2 as api
from parley.postgres import Pool
from support.chatd.models.served_models import ANN_ID, ServedModels, served_models


@pytest.fixture
async def served(pool: Pool, tmp_path: Path) -> AsyncIterator[ServedModels]:
    async with served_models(pool, tmp_path) as running:
        yield running


def changing(*paths: str, **values: Any) -> api.UpdateInstallationSettingsRequest:
    request = api.UpdateInstallationSettingsRequest(
        settings=settings_pb2.InstallationSettings(**values)
    )
    request.update_mask.paths.extend(paths or values)
    return request


async def test_settings_are_as_usual_until_somebody_changes_them(served: ServedModels) -> None:
    usual = (await served.ann.ask(api.GetInstallationSettingsRequest())).settings
    assert usual == settings_pb2.InstallationSettings(
        include_default_system_prompt=True,
        compact_on_final_step=True,
        retention_notice_days=7,
        own_model_overrides_allowed=True,
    )
    changed = await served.ada.ask(changing(system_prompt="Be kind.", retention_days=30))
    expected = settings_pb2.InstallationSettings(
        system_prompt="Be kind.",
        retention_days=30,
        compact_on_final_step=True,
        retention_notice_days=7,
        own_model_overrides_allowed=True,
    )
    assert changed.settings == expected
    assert (await served.ann.ask(api.GetInstallationSettingsRequest())).settings == expected
    catalogue = (await served.configuration.current()).catalogue
    assert catalogue.settings.system_prompt == "Be kind."


async def test_the_fallback_model_of_all_is_one_that_there_is(served: ServedModels) -> None:
    model = await served.ada.model((await served.ada.provider()).id)
    changed = await served.ada.ask(changing(fallback_model_id=model.name))
    assert changed.settings.fallback_model_id == model.id
    refused = await served.ada.refusal(changing(fallback_model_id="no such model"))
    assert refused.status.name == "NOT_FOUND"
    cleared = await served.ada.ask(changing("fallback_model_id"))
    assert cleared.settings.fallback_model_id == ""


async def test_only_administrators_change_what_holds_for_all(served: ServedModels) -> None:
    refused = await served.ann.refusal(changing(system_prompt="x"))
    assert refused.status.name == "PERMISSION_DENIED"


async def test_users_have_settings_of_their_own(served: ServedModels) -> None:
    provider = await served.ada.provider()
    model = await served.ada.model(provider.id)
    served.told.clear()
    request = api.UpdateUserSettingsRequest(
        settings=settings_pb2.UserSettings(
            custom_prompt="Speak French.", compaction_threshold_percents={model.id: 40}
        )
    )
    request.update_mask.paths.extend(("custom_prompt", "compaction_threshold_percents"))
    await served.configuration.user(OwnerId(ANN_ID))
    changed = (await served.ann.ask(request)).settings
    assert changed == request.settings
    assert (await served.ann.ask(api.GetUserSettingsRequest())).settings == changed
    bobs = (await served.bob.ask(api.GetUserSettingsRequest())).settings
    assert bobs == settings_pb2.UserSettings()
    known = await served.configuration.user(OwnerId(ANN_ID))
    assert known.settings.threshold_percent(model.id, 70) == 40
    assert [what for what, _ in served.told] == [ANN_ID]


async def test_thresholds_are_for_models_that_there_are(served: ServedModels) -> None:
    model = await served.ada.model((await served.ada.provider()).id, "m")

    def setting(**percents: int) -> api.UpdateUserSettingsRequest:
        given = settings_pb2.UserSettings(compaction_threshold_percents=percents)
        request = api.UpdateUserSettingsRequest(settings=given)
        request.update_mask.paths.append("compaction_threshold_percents")
        return request

    refused = await served.ann.refusal(setting(m=40, absent=50))
    assert [each.field for each in refused.violations] == [
        "settings.compaction_threshold_percents.absent"
    ]
    # A name is as good as the id, which is what counts.
    kept = (await served.ann.ask(setting(m=40))).settings
    assert dict(kept.compaction_threshold_percents) == {model.id: 40}


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (changing("nothing"), "update_mask"),
        (api.UpdateInstallationSettingsRequest(), "update_mask"),
        (changing(system_prompt="x" * 200_000), "settings.system_prompt"),
        (changing(workspace_ttl_ms=5), "settings.workspace_ttl_ms"),
        (changing(retention_days=-1), "settings.retention_days"),
        (changing(auto_archive_days=4000), "settings.auto_archive_days"),
    ],
)
async def test_a_wrong_setting_is_named(served: ServedModels, request_: Any, field: str) -> None:
    refused = await served.ada.refusal(request_)
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", field)


def advising(**values: Any) -> api.SetAdvisorSettingsRequest:
    return api.SetAdvisorSettingsRequest(settings=settings_pb2.AdvisorSettings(**values))


async def test_the_advisor_is_off_until_an_administrator_enables_it(served: ServedModels) -> None:
    usual = settings_pb2.AdvisorSettings(uses_per_turn_max=3, output_tokens_max=16384)
    assert (await served.ann.ask(api.GetAdvisorSettingsRequest())).settings == usual
    refused = await served.ann.refusal(advising(enabled=True))
    assert refused.status.name == "PERMISSION_DENIED"
    model = await served.ada.model((await served.ada.provider()).id, "strong")
    wanted = settings_pb2.AdvisorSettings(
        enabled=True,
        uses_per_turn_max=5,
        output_tokens_max=2000,
        model_id=model.id,
        reasoning_effort=chat_pb2.REASONING_EFFORT_HIGH,
    )
    given = api.SetAdvisorSettingsRequest(settings=wanted)
    given.settings.model_id = "strong"
    assert (await served.ada.ask(given)).settings == wanted
    assert (await served.ann.ask(api.GetAdvisorSettingsRequest())).settings == wanted
    catalogue = (await served.configuration.current()).catalogue
    assert catalogue.overrides[Purpose.ADVISOR].model_id == model.id
    # What is left out is as usual again, the model as well.
    again = (await served.ada.ask(advising(enabled=True))).settings
    assert again == settings_pb2.AdvisorSettings(
        enabled=True, uses_per_turn_max=3, output_tokens_max=16384
    )
    assert Purpose.ADVISOR not in (await served.configuration.current()).catalogue.overrides


async def test_settings_of_the_advisor_are_an_event_of_the_audit_log(served: ServedModels) -> None:
    await served.ada.ask(advising(enabled=True))
    rows = await served.pool.fetch("SELECT action, details::text FROM chat.audit_outbox")

    assert [tuple(row) for row in rows] == [("settings.updated", '{"names": "advisor"}')]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (advising(uses_per_turn_max=-1), "settings.uses_per_turn_max"),
        (advising(output_tokens_max=-1), "settings.output_tokens_max"),
        (
            advising(reasoning_effort=chat_pb2.REASONING_EFFORT_HIGH),
            "settings.reasoning_effort",
        ),
    ],
)
async def test_a_wrong_setting_of_the_advisor_is_named(
    served: ServedModels, request_: Any, field: str
) -> None:
    refused = await served.ada.refusal(request_)
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", field)


async def test_a_model_that_there_is_not_cannot_advise(served: ServedModels) -> None:
    refused = await served.ada.refusal(advising(enabled=True, model_id="absent"))
    assert refused.reason == "MODEL_NOT_FOUND"
