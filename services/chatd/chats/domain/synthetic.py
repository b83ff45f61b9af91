"""Results for calls that never got one, so that every history in a prompt is complete."""

import json

from chatd.chats.domain.chat import PendingCall
from chatd.content.domain.parts import ToolOutcome, ToolResult


def synthetic_result(call: PendingCall, reason: str) -> ToolResult:
    """Return the result of a call that was cancelled for `reason`."""
    return ToolResult(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        result_json=json.dumps({"error": reason}),
        outcome=ToolOutcome.CANCELLED,
        mcp_server_id=call.mcp_server_id,
    )
