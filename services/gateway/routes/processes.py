"""HTTP route of the output of processes of a chat's workspace."""

import asyncio
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.json_output import to_json
from gateway.api.parameters import path_id
from gateway.http.authentication import Principal
from gateway.http.disconnects import cancel_on_disconnect
from gateway.http.request_body import int_parameter, invalid_parameter, read_query
from gateway.http.responses import json_response
from gateway.streams.workspace_client import Workspaces
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.contract.rules import JSON_INTEGER_MAX

WAIT_S_MAX: Final = 300
#: Between the end of a wait and the deadline of its response.
HEADROOM_S: Final = 30.0
OUTPUT_BYTES_MAX: Final = 1024 * 1024
PATTERN_CHARACTERS_MAX: Final = 1000

UNTIL: Final[Mapping[str, "process_pb2.WaitUntil.ValueType"]] = {
    "exit": process_pb2.WAIT_UNTIL_EXIT,
    "output": process_pb2.WAIT_UNTIL_OUTPUT,
    "match": process_pb2.WAIT_UNTIL_MATCH,
    "snapshot": process_pb2.WAIT_UNTIL_SNAPSHOT,
}


class ProcessRoutes:
    """The output of processes."""

    def __init__(self, workspaces: Workspaces, *, draining: asyncio.Event) -> None:
        self._workspaces = workspaces
        self._draining = draining

    async def output(self, request: Request, principal: Principal) -> Response:
        """Wait for a process and return its output; a timeout is not an error."""
        query = read_query(request, "wait", "until", "pattern", "cursor", "max_bytes")
        asked = api.WaitWorkspaceOutputRequest(
            workspace_id=path_id(request, "chat_id"),
            process_id=path_id(request, "process_id"),
            since_cursor=int_parameter(query, "cursor", least=0, most=JSON_INTEGER_MAX) or 0,
            condition=_condition(query),
            budget=process_pb2.OutputBudget(
                max_bytes=int_parameter(query, "max_bytes", least=1, most=OUTPUT_BYTES_MAX) or 0
            ),
        )
        answer = await cancel_on_disconnect(request, self._draining, self._waited(principal, asked))
        return json_response(to_json(answer))

    async def _waited(
        self, principal: Principal, asked: api.WaitWorkspaceOutputRequest
    ) -> api.WaitWorkspaceOutputResponse:
        timeout_s = asked.condition.max_wait_ms / 1000 + HEADROOM_S
        return await self._workspaces.ask(
            principal.user,
            asked.workspace_id,
            lambda stub: stub.WaitWorkspaceOutput(asked, timeout=timeout_s),
        )


def _condition(query: Mapping[str, str]) -> process_pb2.WaitCondition:
    """Return the wait condition; without a time it is a snapshot."""
    wait_s = int_parameter(query, "wait", least=0, most=WAIT_S_MAX) or 0
    until = query.get("until", "exit" if wait_s else "snapshot")
    if until not in UNTIL:
        raise invalid_parameter("until", f"Give one of {', '.join(UNTIL)}.")
    pattern = query.get("pattern", "")
    if bool(pattern) is not (until == "match"):
        raise invalid_parameter("pattern", "Give it with until=match, and with nothing else.")
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise invalid_parameter("pattern", f"Give at most {PATTERN_CHARACTERS_MAX} characters.")
    return process_pb2.WaitCondition(until=UNTIL[until], pattern=pattern, max_wait_ms=wait_s * 1000)
