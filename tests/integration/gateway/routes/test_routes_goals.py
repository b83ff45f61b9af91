"""Goals over HTTP, and what chatd is asked for them."""

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import goal_pb2
from parley.api.chat.v1 import goal_service_pb2 as api
from support.gateway.chats import last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
CHAT_ID = "00000000-0000-0000-0000-0000000000e2"
PATH = f"/api/v1/chats/{CHAT_ID}/goal"
BODY = {
    "text": "Mend it.",
    "check_command": "make test",
    "turns_max": 5,
    "seconds_max": 60,
    "cost_max_micros": 7,
    "judge_model_id": "m",
}
GIVEN = goal_pb2.Goal(
    text="Mend it.",
    check_command="make test",
    turns_max=5,
    seconds_max=60,
    cost_max_micros=7,
    judge_model_id="m",
)


async def test_a_goal_is_set_read_paused_resumed_and_ended(stack: GatewayStack) -> None:
    stored = goal_pb2.Goal(
        chat_id=CHAT_ID,
        state=goal_pb2.GOAL_STATE_ACTIVE,
        turns_count=1,
        cost_micros=3,
        check_output="1 failed",
        verdict="No tests.",
        created_at=Timestamp(seconds=1767225600),
    )
    stored.MergeFrom(GIVEN)
    answers = stack.chatd.answers
    answers["SetGoal"] = api.SetGoalResponse(goal=stored)
    made = await stack.owner.request("PUT", PATH, BODY, headers=KEY)
    shown = {
        **BODY,
        "chat_id": CHAT_ID,
        "state": "active",
        "reason": None,
        "turns_count": 1,
        "cost_micros": 3,
        "check_output": "1 failed",
        "created_at": "2026-01-01T00:00:00Z",
        "judge_model_id": "m",
        "verdict": "No tests.",
    }
    assert (made.status, made.json()) == (200, shown)
    assert last_request(stack) == api.SetGoalRequest(
        request_id="key-1", chat_id=CHAT_ID, goal=GIVEN
    )
    answers["GetGoal"] = api.GetGoalResponse(goal=stored)
    assert (await stack.owner.request("GET", PATH)).json() == shown
    answers["ListGoals"] = api.ListGoalsResponse(goals=[stored])
    assert (await stack.owner.request("GET", f"{PATH}s")).json() == {"items": [shown]}
    answers["ListGoals"] = api.ListGoalsResponse()
    none = await stack.owner.request("GET", f"{PATH}s")
    assert (none.status, none.json()) == (200, {"items": []})
    answers["PauseGoal"] = api.PauseGoalResponse(goal=stored)
    paused = await stack.owner.request("POST", f"{PATH}/pause", headers=KEY)
    assert (paused.status, paused.json()) == (200, shown)
    answers["ResumeGoal"] = api.ResumeGoalResponse(goal=stored)
    resumed = await stack.owner.request("POST", f"{PATH}/resume", headers=KEY)
    assert (resumed.status, resumed.json()) == (200, shown)
    ended = await stack.owner.request("DELETE", PATH, headers=KEY)
    assert ended.status == 204
    assert last_request(stack) == api.EndGoalRequest(request_id="key-1", chat_id=CHAT_ID)
