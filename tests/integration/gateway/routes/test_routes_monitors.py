"""Monitors over HTTP, and what chatd is asked for them."""

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import monitor_pb2
from parley.api.chat.v1 import monitor_service_pb2 as api
from support.gateway.chats import last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
CHAT_ID = "00000000-0000-0000-0000-0000000000e2"
MONITOR_ID = "00000000-0000-0000-0000-0000000000e3"
PATH = f"/api/v1/chats/{CHAT_ID}/monitors"


async def test_monitors_are_listed_and_cancelled(stack: GatewayStack) -> None:
    stored = monitor_pb2.Monitor(
        id=MONITOR_ID,
        chat_id=CHAT_ID,
        process_id="p1",
        command="npm run dev",
        pattern="ready",
        state=monitor_pb2.MONITOR_STATE_WAITING,
        created_at=Timestamp(seconds=1767225600),
        expires_at=Timestamp(seconds=1767225660),
    )
    shown = {
        "id": MONITOR_ID,
        "chat_id": CHAT_ID,
        "process_id": "p1",
        "command": "npm run dev",
        "pattern": "ready",
        "note": None,
        "state": "waiting",
        "cause": None,
        "detail": None,
        "reason": None,
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-01T00:01:00Z",
    }
    stack.chatd.answers["ListMonitors"] = api.ListMonitorsResponse(monitors=[stored])
    listed = await stack.owner.request("GET", PATH)
    assert (listed.status, listed.json()) == (200, {"items": [shown]})
    over = monitor_pb2.Monitor()
    over.CopyFrom(stored)
    over.state, over.cause = (
        monitor_pb2.MONITOR_STATE_ENDED,
        monitor_pb2.MONITOR_CAUSE_MATCHED,
    )
    over.reason = "Its owner cancelled it."
    stack.chatd.answers["CancelMonitor"] = api.CancelMonitorResponse(monitor=over)
    cancelled = await stack.owner.request("POST", f"{PATH}/{MONITOR_ID}/cancel", headers=KEY)
    expected = {
        **shown,
        "state": "ended",
        "cause": "matched",
        "reason": "Its owner cancelled it.",
    }
    assert (cancelled.status, cancelled.json()) == (200, expected)
    assert last_request(stack) == api.CancelMonitorRequest(
        request_id="key-1", chat_id=CHAT_ID, monitor_id=MONITOR_ID
    )
