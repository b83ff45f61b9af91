"""Users' own models, favourites and hidden models, over gRPC and stored in PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chatd.models.domain.own_model import OwnMode, OwnModel
from chatd.models.domain.profile import ReasoningEffort
from chatd.primitives.domain.ids import OwnerId
from parley.api.chat.v1 import chat_pb2, model_pb2, settings_pb2
from parley.api.chat.v1 import settings_service_pb2 as api
from parley.postgres import Pool
from support.chatd.models.served_models import ANN_ID, ServedModels, Somebody, served_models

ROOT = settings_pb2.OWN_MODEL_PURPOSE_ROOT
GENERAL = settings_pb2.OWN_MODEL_PURPOSE_GENERAL
EXPLORE = settings_pb2.OWN_MODEL_PURPOSE_EXPLORE
INSTALLATION = settings_pb2.OWN_MODEL_MODE_INSTALLATION_DEFAULT
CHAT = settings_pb2.OWN_MODEL_MODE_CHAT_DEFAULT
MODEL = settings_pb2.OWN_MODEL_MODE_MODEL
HIGH = chat_pb2.REASONING_EFFORT_HIGH
LOW = chat_pb2.REASONING_EFFORT_LOW


@pytest.fixture
async def served(pool: Pool, tmp_path: Path) -> AsyncIterator[ServedModels]:
    async with served_models(pool, tmp_path) as running:
        yield running


def own(purpose: int, mode: int = 0, **values: Any) -> api.SetOwnModelOverrideRequest:
    fields: dict[str, Any] = {"purpose": purpose, "mode": mode, **values}
    override = settings_pb2.OwnModelOverride(**fields)
    return api.SetOwnModelOverrideRequest(override=override)


async def listed(user: Somebody) -> list[tuple[int, int, str]]:
    answer = await user.ask(api.ListOwnModelOverridesRequest())
    return [(each.purpose, each.mode, each.model_id) for each in answer.overrides]


async def allow(served: ServedModels, *, is_allowed: bool) -> None:
    settings = settings_pb2.InstallationSettings(own_model_overrides_allowed=is_allowed)
    request = api.UpdateInstallationSettingsRequest(settings=settings)
    request.update_mask.paths.append("own_model_overrides_allowed")
    await served.ada.ask(request)


async def test_a_user_sets_own_models_and_takes_them_away(served: ServedModels) -> None:
    usual = [(ROOT, CHAT, ""), (GENERAL, INSTALLATION, ""), (EXPLORE, INSTALLATION, "")]
    assert await listed(served.ann) == usual
    model = await served.ada.model((await served.ada.provider()).id, "strong")
    set_ = (
        await served.ann.ask(own(ROOT, MODEL, model_id="strong", reasoning_effort=HIGH))
    ).override
    assert (set_.model_id, set_.reasoning_effort) == (model.id, HIGH)
    await served.ann.ask(own(EXPLORE, CHAT))
    assert await listed(served.ann) == [(ROOT, MODEL, model.id), usual[1], (EXPLORE, CHAT, "")]
    assert await listed(served.bob) == usual
    known = (await served.configuration.user(OwnerId(ANN_ID))).settings
    assert known.root_model == OwnModel(OwnMode.MODEL, model.id, ReasoningEffort.HIGH)
    await served.ann.ask(own(ROOT))
    await served.ann.ask(own(EXPLORE))
    assert await listed(served.ann) == usual


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (own(0, CHAT), "override.purpose"),
        (own(ROOT, INSTALLATION), "override.mode"),
        (own(ROOT, MODEL), "override.model_id"),
        (own(ROOT, CHAT, model_id="m"), "override.model_id"),
        (own(ROOT, CHAT, reasoning_effort=LOW), "override.reasoning_effort"),
        (own(ROOT, MODEL, model_id="m", reasoning_effort=HIGH), "override.reasoning_effort"),
    ],
)
async def test_a_wrong_own_model_is_named(served: ServedModels, request_: Any, field: str) -> None:
    await served.ada.model((await served.ada.provider()).id, "m", max_effort=LOW)
    refused = await served.ann.refusal(request_)
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", field)


async def test_a_model_that_there_is_not_is_no_own_model(served: ServedModels) -> None:
    refused = await served.ann.refusal(own(GENERAL, MODEL, model_id="absent"))
    assert refused.reason == "MODEL_NOT_FOUND"


async def test_administrators_switch_own_models_off(served: ServedModels) -> None:
    await served.ada.model((await served.ada.provider()).id, "m")
    await allow(served, is_allowed=False)
    assert not (await served.ann.ask(api.ListOwnModelOverridesRequest())).allowed
    refused = await served.ann.refusal(own(ROOT, MODEL, model_id="m"))
    assert refused.status.name == "PERMISSION_DENIED"
    # What is stored can still be taken away.
    await served.ann.ask(own(ROOT))
    await allow(served, is_allowed=True)
    await served.ann.ask(own(ROOT, MODEL, model_id="m"))


def listing(**ids: Any) -> api.UpdateUserSettingsRequest:
    request = api.UpdateUserSettingsRequest(settings=settings_pb2.UserSettings(**ids))
    request.update_mask.paths.extend(ids)
    return request


async def test_favourites_come_first_and_every_user_has_a_list_of_their_own(
    served: ServedModels,
) -> None:
    provider = await served.ada.provider()
    ids = [(await served.ada.model(provider.id, name)).id for name in ("a", "b", "c")]
    saved = await served.ann.ask(listing(favourite_model_ids=["c", ids[2]], hidden_model_ids=["a"]))
    assert list(saved.settings.favourite_model_ids) == [ids[2]]
    threshold = settings_pb2.UserSettings(compaction_threshold_percents={"b": 40})
    request = api.UpdateUserSettingsRequest(settings=threshold)
    request.update_mask.paths.append("compaction_threshold_percents")
    await served.ann.ask(request)

    def shown(models: list[model_pb2.Model]) -> list[tuple[str, bool, bool, int]]:
        return [
            (m.name, m.is_favourite, m.is_hidden, m.effective_compaction_threshold_percent)
            for m in models
        ]

    assert shown(await served.ann.listed()) == [
        ("c", True, False, 70),
        ("a", False, True, 70),
        ("b", False, False, 40),
    ]
    assert [name for name, *_ in shown(await served.bob.listed())] == ["a", "b", "c"]


async def test_a_list_of_models_names_models_that_there_are(served: ServedModels) -> None:
    await served.ada.model((await served.ada.provider()).id, "m")
    refused = await served.ann.refusal(listing(hidden_model_ids=["m", "absent"]))
    assert [each.field for each in refused.violations] == ["settings.hidden_model_ids[1]"]
