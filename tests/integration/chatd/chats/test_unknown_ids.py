"""Requests with several ids that do not exist, or with invalid values beside them.

One answer has all of the problems, at their fields.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from chatd.chats.rpc.defaults import ConfiguredDefaults
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import goal_pb2, schedule_pb2
from parley.api.chat.v1 import goal_service_pb2 as goal_api
from parley.api.chat.v1 import schedule_service_pb2 as schedule_api
from parley.postgres import Pool
from support.chatd.chats.chat_people import BOB_ID, text
from support.chatd.chats.chat_requests import create, file_part, update
from support.chatd.chats.served_chats import ServedChats, served_chats
from support.chatd.models.model_catalogue import KnownConfiguration, catalogue

ABSENT = "00000000-0000-0000-0000-0000000000f7"


@pytest.fixture
async def with_models(pool: Pool, tmp_path: Path) -> AsyncIterator[ServedChats]:
    """Serve chats of an installation that has models."""
    defaults = ConfiguredDefaults(KnownConfiguration(catalogue()))
    async with served_chats(pool, tmp_path, defaults=defaults) as running:
        yield running


async def test_models_and_files_that_do_not_exist_are_named_beside_other_unknown_ids(
    with_models: ServedChats,
) -> None:
    ann = with_models.ann
    content = [text("see"), file_part(ABSENT), file_part(BOB_ID)]
    models: dict[str, Any] = {"model_id": "absent", "fallback_model_id": "absent too"}
    request = api.CreateChatRequest(
        request_id="c", content=content, workspace_id=ABSENT, mcp_server_ids=[ABSENT], **models
    )
    refused = await ann.refusal(request)
    assert (refused.reason, refused.metadata["resource"]) == (
        "UNKNOWN_ID",
        "workspace or MCP server or file or model",
    )
    files = ["content[1].file.file_id", "content[2].file.file_id"]
    assert [each.field for each in refused.violations] == [
        "workspace_id",
        "mcp_server_ids[0]",
        *files,
        "model_id",
        "fallback_model_id",
    ]
    chat = await ann.create()
    refused = await ann.refusal(update(chat.id, workspace_id=ABSENT, **models))
    assert [each.field for each in refused.violations] == [
        "chat.fallback_model_id",
        "chat.workspace_id",
        "chat.model_id",
    ]
    sending = api.SendMessageRequest(
        request_id="s", chat_id=chat.id, content=content, model_id="absent"
    )
    sending.mcp_servers.mcp_server_ids.append(ABSENT)
    refused = await ann.refusal(sending)
    assert [each.field for each in refused.violations] == ["model_id", *files, "mcp_server_ids[0]"]


async def test_an_unknown_fallback_model_is_not_reported_as_the_model(
    with_models: ServedChats,
) -> None:
    refused = await with_models.ann.refusal(create(fallback_model_id="absent"))
    assert refused.reason == "MODEL_NOT_FOUND"
    assert [each.field for each in refused.violations] == ["fallback_model_id"]
    chat = await with_models.ann.create()
    refused = await with_models.ann.refusal(update(chat.id, fallback_model_id="absent"))
    assert refused.reason == "MODEL_NOT_FOUND"
    assert [each.field for each in refused.violations] == ["chat.fallback_model_id"]


async def test_unknown_ids_of_schedules_and_goals_are_named_at_their_fields(
    with_models: ServedChats,
) -> None:
    ann = with_models.ann
    chat = await ann.create()
    schedule = schedule_pb2.Schedule(
        text="Look.", cron="0 0 1 1 *", workspace_id=ABSENT, model_id="absent"
    )
    refused = await ann.refusal(
        schedule_api.CreateScheduleRequest(request_id="s", schedule=schedule)
    )
    assert [each.field for each in refused.violations] == [
        "schedule.workspace_id",
        "schedule.model_id",
    ]
    goal = goal_pb2.Goal(text="Be done.", judge_model_id="absent")
    refused = await ann.refusal(goal_api.SetGoalRequest(request_id="g", chat_id=chat.id, goal=goal))
    assert refused.reason == "MODEL_NOT_FOUND"
    assert [each.field for each in refused.violations] == ["goal.judge_model_id"]


async def test_the_unknown_chat_of_a_schedule_is_named_beside_its_other_problems(
    with_models: ServedChats,
) -> None:
    ann = with_models.ann

    def creating(**given: Any) -> schedule_api.CreateScheduleRequest:
        whole: dict[str, Any] = {"text": "Look.", "cron": "0 0 1 1 *", "chat_id": ABSENT, **given}
        schedule = schedule_pb2.Schedule(**whole)
        return schedule_api.CreateScheduleRequest(request_id="s", schedule=schedule)

    assert (await ann.refusal(creating())).reason == "CHAT_NOT_FOUND"
    refused = await ann.refusal(creating(model_id="absent"))
    assert (refused.reason, refused.metadata["resource"]) == ("UNKNOWN_ID", "chat or model")
    fields = ["schedule.chat_id", "schedule.model_id"]
    assert [each.field for each in refused.violations] == fields
    wrong = {"text": " ", "cron": "every day", "time_zone": "Mars/Base", "unattended": True}
    refused = await ann.refusal(creating(model_id="absent", workspace_id=ABSENT, **wrong))
    assert refused.reason == "INVALID_REQUEST"
    values = ["text", "workspace_id", "unattended", "cron", "time_zone"]
    assert [each.field for each in refused.violations] == [
        *(f"schedule.{name}" for name in values),
        *fields,
    ]
    made = await ann.ask(creating(chat_id=""))
    edited = schedule_pb2.Schedule(id=made.schedule.id, text=" ", model_id="absent")
    mask = FieldMask(paths=["text", "model_id"])
    refused = await ann.refusal(
        schedule_api.UpdateScheduleRequest(request_id="u", schedule=edited, update_mask=mask)
    )
    assert [each.field for each in refused.violations] == ["schedule.text", "schedule.model_id"]


async def test_a_goal_without_text_is_refused_with_its_unknown_model(
    with_models: ServedChats,
) -> None:
    ann = with_models.ann
    chat = await ann.create()
    goal = goal_pb2.Goal(text=" ", judge_model_id="absent")
    refused = await ann.refusal(goal_api.SetGoalRequest(request_id="g", chat_id=chat.id, goal=goal))
    assert refused.reason == "INVALID_REQUEST"
    assert [each.field for each in refused.violations] == ["goal.text", "goal.judge_model_id"]
