"""Schedules over HTTP, and what chatd is asked for them."""

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import chat_pb2, schedule_pb2
from parley.api.chat.v1 import schedule_service_pb2 as api
from support.gateway.chats import last_request
from support.gateway.stack import GatewayStack

PATH = "/api/v1/schedules"
KEY = {"Idempotency-Key": "key-1"}
ID = "00000000-0000-0000-0000-0000000000d1"
CHAT_ID = "00000000-0000-0000-0000-0000000000d2"
AT = Timestamp(seconds=1767225600)
GIVEN = schedule_pb2.Schedule(
    text="Look.",
    cron="0 9 * * *",
    time_zone="Europe/Berlin",
    mode=chat_pb2.CHAT_MODE_PLAN,
    missed_runs=schedule_pb2.MISSED_RUNS_RUN_ONCE,
    ends_at=AT,
    runs_max=3,
)
BODY = {
    "text": "Look.",
    "cron": "0 9 * * *",
    "time_zone": "Europe/Berlin",
    "mode": "plan",
    "missed_runs": "run_once",
    "ends_at": "2026-01-01T00:00:00Z",
    "runs_max": 3,
}
RUN = schedule_pb2.ScheduleRun(
    planned_at=AT,
    begun_at=AT,
    outcome=schedule_pb2.SCHEDULE_RUN_OUTCOME_COMPLETED,
    chat_id=CHAT_ID,
)
SHOWN_RUN = {
    "planned_at": "2026-01-01T00:00:00Z",
    "begun_at": "2026-01-01T00:00:00Z",
    "outcome": "completed",
    "chat_id": CHAT_ID,
    "error": None,
}


def stored() -> schedule_pb2.Schedule:
    schedule = schedule_pb2.Schedule(
        id=ID,
        state=schedule_pb2.SCHEDULE_STATE_PAUSED,
        pause_reason="No money.",
        runs_count=1,
        failures_count=3,
        last_run=RUN,
        created_at=AT,
    )
    schedule.MergeFrom(GIVEN)
    return schedule


async def test_a_schedule_is_made_read_paused_resumed_and_deleted(stack: GatewayStack) -> None:
    answers = stack.chatd.answers
    answers["CreateSchedule"] = api.CreateScheduleResponse(schedule=stored())
    made = await stack.owner.request("POST", PATH, BODY, headers=KEY)
    assert (made.status, made.headers["location"]) == (201, f"{PATH}/{ID}")
    assert made.json() == {
        **BODY,
        "id": ID,
        "name": "",
        "chat_id": None,
        "model_id": None,
        "reasoning_effort": None,
        "workspace_id": None,
        "unattended": False,
        "at": None,
        "state": "paused",
        "pause_reason": "No money.",
        "next_run_at": None,
        "runs_count": 1,
        "failures_count": 3,
        "last_run": SHOWN_RUN,
        "created_at": "2026-01-01T00:00:00Z",
    }
    assert last_request(stack) == api.CreateScheduleRequest(request_id="key-1", schedule=GIVEN)
    answers["ListSchedules"] = api.ListSchedulesResponse(schedules=[stored()])
    listed = await stack.owner.request("GET", PATH)
    assert listed.json() == {"items": [made.json()], "next_cursor": None}
    answers["GetSchedule"] = api.GetScheduleResponse(schedule=stored())
    assert (await stack.owner.request("GET", f"{PATH}/{ID}")).json() == made.json()
    answers["ListScheduleRuns"] = api.ListScheduleRunsResponse(runs=[RUN])
    runs = await stack.owner.request("GET", f"{PATH}/{ID}/runs")
    assert runs.json() == {"items": [SHOWN_RUN]}
    answers["PauseSchedule"] = api.PauseScheduleResponse(schedule=stored())
    paused = await stack.owner.request("POST", f"{PATH}/{ID}/pause", headers=KEY)
    assert (paused.status, paused.json()) == (200, made.json())
    assert last_request(stack) == api.PauseScheduleRequest(request_id="key-1", schedule_id=ID)
    answers["ResumeSchedule"] = api.ResumeScheduleResponse(schedule=stored())
    resumed = await stack.owner.request("POST", f"{PATH}/{ID}/resume", headers=KEY)
    assert (resumed.status, resumed.json()) == (200, made.json())
    deleted = await stack.owner.request("DELETE", f"{PATH}/{ID}", headers=KEY)
    assert deleted.status == 204
    assert last_request(stack) == api.DeleteScheduleRequest(request_id="key-1", schedule_id=ID)


async def test_a_time_needs_its_offset_and_is_understood_in_any(stack: GatewayStack) -> None:
    wrongs: tuple[object, ...] = ("2026-01-01T01:00:00", "tomorrow", 5, {})
    for wrong in wrongs:
        refused = await stack.owner.request("POST", PATH, {**BODY, "ends_at": wrong}, headers=KEY)
        assert (refused.status, refused.json()["errors"][0]["pointer"]) == (422, "/ends_at")
    for moment in ("2026-01-01T01:00:00+01:00", "0001-01-01T00:00:00+01:00"):
        body = {**BODY, "ends_at": moment}
        stack.chatd.answers["CreateSchedule"] = api.CreateScheduleResponse(schedule=stored())
        made = await stack.owner.request("POST", PATH, body, headers=KEY)
        assert made.status == 201
        if moment.startswith("2026"):
            assert last_request(stack) == api.CreateScheduleRequest(
                request_id="key-1", schedule=GIVEN
            )


async def test_a_schedule_is_edited_unless_it_changed(stack: GatewayStack) -> None:
    edited = stored()
    edited.etag = "5"
    stack.chatd.answers["UpdateSchedule"] = api.UpdateScheduleResponse(schedule=edited)
    body = {"text": "Listen.", "cron": None, "at": "2026-01-01T00:00:00Z"}
    answer = await stack.owner.request(
        "PATCH", f"{PATH}/{ID}", body, headers={**KEY, "If-Match": '"4"'}
    )
    assert (answer.status, answer.headers["etag"]) == (200, '"5"')
    asked = last_request(stack)
    assert asked.schedule == schedule_pb2.Schedule(id=ID, text="Listen.", at=AT, etag="4")
    assert sorted(asked.update_mask.paths) == ["at", "cron", "text"]
