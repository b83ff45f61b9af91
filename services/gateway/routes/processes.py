"""HTTP routes of the processes of a chat's workspace."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.workspace_access import (
    PROCESS_STATE,
    process_to_json,
    spec_to_proto,
    stdin_bytes,
    waited_to_json,
)
from gateway.api.inputs.chats import INTEGER_MAX
from gateway.api.inputs.workspace_access import NewProcess, SignalInput, StdinInput
from gateway.api.paging import page_request, page_to_json
from gateway.api.path_parameters import chat_id_of, process_id_of
from gateway.http.authentication import Principal
from gateway.http.disconnects import cancel_on_disconnect
from gateway.http.request_body import (
    idempotency_key,
    int_parameter,
    invalid_parameter,
    read_json,
    read_query,
)
from gateway.http.responses import json_response
from gateway.streams.workspace_client import Workspaces
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api

WAIT_S_MAX: Final = 300
#: Between the end of a wait and the deadline of its response.
HEADROOM_S: Final = 30.0
OUTPUT_BYTES_MAX: Final = 1024 * 1024
PATTERN_CHARACTERS_MAX: Final = 1000
#: The route of a process ignores the output, but the wait that it uses returns some.
LOOK_BYTES: Final = 1024

UNTIL: Final[Mapping[str, "process_pb2.WaitUntil.ValueType"]] = {
    "exit": process_pb2.WAIT_UNTIL_EXIT,
    "output": process_pb2.WAIT_UNTIL_OUTPUT,
    "match": process_pb2.WAIT_UNTIL_MATCH,
    "snapshot": process_pb2.WAIT_UNTIL_SNAPSHOT,
}


class ProcessRoutes:
    """The routes under /chats/{chat_id}/processes."""

    def __init__(
        self, workspaces: Workspaces, *, new_id: Callable[[], str], draining: asyncio.Event
    ) -> None:
        self._workspaces = workspaces
        self._new_id = new_id
        self._draining = draining

    async def list(self, request: Request, principal: Principal) -> Response:
        """List processes, running ones first, then the newest."""
        query = read_query(request, "limit", "cursor", repeatable=("state",))
        chat_id, page = chat_id_of(request), page_request(query)
        asked = api.ListWorkspaceProcessesRequest(
            workspace_id=chat_id,
            states=map(_state, request.query_params.getlist("state")),
            page_size=page.page_size,
            page_token=page.page_token,
        )
        answer = await self._workspaces.ask(
            principal.user, chat_id, lambda stub: stub.ListWorkspaceProcesses(asked)
        )
        items = map(process_to_json, answer.processes)
        return json_response(page_to_json(items, answer.next_page_token))

    async def start(self, request: Request, principal: Principal) -> Response:
        """Start a process, once for each key."""
        read_query(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewProcess)
        asked = api.StartWorkspaceProcessRequest(
            request_id=key, workspace_id=chat_id, spec=spec_to_proto(body)
        )
        answer = await self._workspaces.ask(
            principal.user, chat_id, lambda stub: stub.StartWorkspaceProcess(asked)
        )
        return json_response(process_to_json(answer.process), status=201)

    async def read(self, request: Request, principal: Principal) -> Response:
        """Return a process."""
        read_query(request)
        snapshot = process_pb2.WaitCondition(until=process_pb2.WAIT_UNTIL_SNAPSHOT)
        asked = api.WaitWorkspaceOutputRequest(
            workspace_id=chat_id_of(request),
            process_id=process_id_of(request),
            condition=snapshot,
            budget=process_pb2.OutputBudget(max_bytes=LOOK_BYTES),
        )
        answer = await self._waited(principal, asked)
        return json_response(process_to_json(answer.process))

    async def output(self, request: Request, principal: Principal) -> Response:
        """Wait for a process and return its output; a timeout is not an error."""
        query = read_query(request, "wait", "until", "pattern", "cursor", "max_bytes")
        asked = api.WaitWorkspaceOutputRequest(
            workspace_id=chat_id_of(request),
            process_id=process_id_of(request),
            since_cursor=int_parameter(query, "cursor", least=0, most=INTEGER_MAX) or 0,
            condition=_condition(query),
            budget=process_pb2.OutputBudget(
                max_bytes=int_parameter(query, "max_bytes", least=1, most=OUTPUT_BYTES_MAX) or 0
            ),
        )
        answer = await cancel_on_disconnect(request, self._draining, self._waited(principal, asked))
        return json_response(waited_to_json(answer))

    async def write(self, request: Request, principal: Principal) -> Response:
        """Write to the standard input of a process, once for each key."""
        read_query(request)
        chat_id, process_id = chat_id_of(request), process_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, StdinInput)
        asked = api.WriteWorkspaceStdinRequest(
            request_id=key,
            workspace_id=chat_id,
            process_id=process_id,
            data=stdin_bytes(body),
            end_of_input=body.end_of_input,
        )
        answer = await self._workspaces.ask(
            principal.user, chat_id, lambda stub: stub.WriteWorkspaceStdin(asked)
        )
        return json_response(process_to_json(answer.process))

    async def signal(self, request: Request, principal: Principal) -> Response:
        """Send a signal to a process and all its children, once for each key."""
        read_query(request)
        chat_id, process_id = chat_id_of(request), process_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, SignalInput)
        asked = api.SignalWorkspaceProcessRequest(
            request_id=key,
            workspace_id=chat_id,
            process_id=process_id,
            signal=process_pb2.ProcessSignal.Value(f"PROCESS_SIGNAL_{body.signal.name}"),
            escalate_after_ms=body.escalate_after_ms,
        )
        answer = await self._workspaces.ask(
            principal.user, chat_id, lambda stub: stub.SignalWorkspaceProcess(asked)
        )
        return json_response(process_to_json(answer.process))

    async def _waited(
        self, principal: Principal, asked: api.WaitWorkspaceOutputRequest
    ) -> api.WaitWorkspaceOutputResponse:
        timeout_s = asked.condition.max_wait_ms / 1000 + HEADROOM_S
        return await self._workspaces.ask(
            principal.user,
            asked.workspace_id,
            lambda stub: stub.WaitWorkspaceOutput(asked, timeout=timeout_s),
        )


def _state(word: str) -> "process_pb2.ProcessState.ValueType":
    known = {name: value for value, name in PROCESS_STATE.items() if name is not None}
    if word not in known:
        raise invalid_parameter("state", f"Give one of {', '.join(known)}.")
    return process_pb2.ProcessState.ValueType(known[word])


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
