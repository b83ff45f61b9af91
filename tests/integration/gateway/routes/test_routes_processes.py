"""The processes of a workspace over HTTP, and what chatd is asked for them."""

import asyncio
from typing import Any

import grpc
import pytest

from parley.api.workspace.v1 import process_pb2, sandbox_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.rpc import Problem, Violation
from support.gateway.chats import NO_CHAT, last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
PROCESS_ID = "00000000-0000-0000-0000-0000000000b1"
PROCESSES = f"/api/v1/chats/{NO_CHAT}/processes"
PROCESS_PATH = f"{PROCESSES}/{PROCESS_ID}"
PROCESS = process_pb2.Process(
    process_id=PROCESS_ID,
    workspace_id=NO_CHAT,
    chat_id=NO_CHAT,
    request_id="never shown",
    command="make test",
    workdir="src",
    state=process_pb2.PROCESS_STATE_EXITED,
    exit=process_pb2.ProcessExit(exit_code=0),
    pid=77,
    output_bytes=5,
    sandbox=sandbox_pb2.SandboxUsed(level=sandbox_pb2.SANDBOX_LEVEL_NONE),
    wall_duration_ms=12,
)
PROCESS.started_at.FromSeconds(1767225600)
PROCESS_JSON: dict[str, Any] = {
    "id": PROCESS_ID,
    "chat_id": NO_CHAT,
    "command": "make test",
    "workdir": "src",
    "background": False,
    "stdin_mode": "closed",
    "state": "exited",
    "exit": {
        "exit_code": 0,
        "signal": None,
        "shell_exit_code": 0,
        "oom_killed": False,
        "timed_out": False,
        "pipes_open": False,
        "exceeded": None,
    },
    "start_error": None,
    "lost_reason": None,
    "pid": 77,
    "running_members": 0,
    "output_bytes": 5,
    "log_path": None,
    "log_start_bytes": 0,
    "sandbox_level": "none",
    "started_at": "2026-01-01T00:00:00Z",
    "ended_at": None,
    "wall_duration_ms": 12,
}


async def test_processes_are_listed_in_pages_and_by_state(stack: GatewayStack) -> None:
    stack.chatd.answers["ListWorkspaceProcesses"] = api.ListWorkspaceProcessesResponse(
        processes=[PROCESS], next_page_token="more"
    )
    query = "?state=running&state=exited&limit=3&cursor=here"
    reply = await stack.owner.request("GET", PROCESSES + query)
    assert (reply.status, reply.json()) == (200, {"items": [PROCESS_JSON], "next_cursor": "more"})
    assert last_request(stack) == api.ListWorkspaceProcessesRequest(
        workspace_id=NO_CHAT,
        states=[process_pb2.PROCESS_STATE_RUNNING, process_pb2.PROCESS_STATE_EXITED],
        page_size=3,
        page_token="here",
    )


async def test_a_process_is_started_under_the_key_of_the_request(stack: GatewayStack) -> None:
    stack.chatd.answers["StartWorkspaceProcess"] = api.StartWorkspaceProcessResponse(
        process=PROCESS
    )
    body = {
        "command": "make test",
        "workdir": "src",
        "environment": {"CI": "1"},
        "stdin_mode": "pipe",
        "stdin": "é",
        "background": True,
        "timeout_ms": 1000,
    }
    reply = await stack.owner.request("POST", PROCESSES, body, KEY)
    assert (reply.status, reply.json()) == (201, PROCESS_JSON)
    assert last_request(stack) == api.StartWorkspaceProcessRequest(
        request_id="key-1",
        workspace_id=NO_CHAT,
        spec=process_pb2.ProcessSpec(
            command="make test",
            workdir="src",
            environment={"CI": "1"},
            stdin_mode=process_pb2.STDIN_MODE_PIPE,
            stdin="é".encode(),
            background=True,
            timeout_ms=1000,
        ),
    )
    words = {"argv": ["ls", "-l"], "terminal": {"rows": 30}}
    await stack.owner.request("POST", PROCESSES, words)
    request = last_request(stack)
    assert request.request_id
    assert request.spec == process_pb2.ProcessSpec(
        argv=process_pb2.ArgumentVector(arguments=["ls", "-l"]),
        terminal=process_pb2.TerminalSize(rows=30),
    )


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("", {}, "/command"),
        ("", {"command": "a", "argv": ["a"]}, "/command"),
        ("", {"command": ""}, "/command"),
        ("", {"command": "a", "timeout_ms": -1}, "/timeout_ms"),
        ("", {"command": "a", "terminal": {"rows": 0}}, "/terminal/rows"),
        (f"/{PROCESS_ID}/stdin", {"text": "a", "data": "YQ=="}, "/data"),
        (f"/{PROCESS_ID}/stdin", {"data": "no base64"}, "/data"),
        (f"/{PROCESS_ID}/signal", {"signal": "sigkill"}, "/signal"),
        (f"/{PROCESS_ID}/signal", {}, "/signal"),
    ],
)
async def test_what_cannot_be_done_is_told_with_its_place(
    stack: GatewayStack, path: str, body: Any, pointer: str
) -> None:
    reply = await stack.owner.request("POST", PROCESSES + path, body)
    assert (reply.status, reply.json()["errors"][0]["pointer"]) == (422, pointer)
    assert stack.chatd.calls == []


async def test_a_process_alone_is_a_look_at_it(stack: GatewayStack) -> None:
    stack.chatd.answers["WaitWorkspaceOutput"] = api.WaitWorkspaceOutputResponse(process=PROCESS)
    reply = await stack.owner.request("GET", PROCESS_PATH)
    assert (reply.status, reply.json()) == (200, PROCESS_JSON)
    assert last_request(stack).condition.until == process_pb2.WAIT_UNTIL_SNAPSHOT


async def test_output_is_waited_for_and_read_after_a_cursor(stack: GatewayStack) -> None:
    stack.chatd.answers["WaitWorkspaceOutput"] = api.WaitWorkspaceOutputResponse(
        process=PROCESS,
        output=process_pb2.ProcessOutput(
            text="up\n",
            next_cursor=5,
            matched_line="up",
            truncation=process_pb2.OutputTruncation(original_bytes=9, omitted_bytes=6),
        ),
        reason=process_pb2.WAIT_REASON_MATCHED,
    )
    query = "?wait=300&until=match&pattern=%5Eup&cursor=2&max_bytes=4096"
    reply = await stack.owner.request("GET", f"{PROCESS_PATH}/output{query}")
    assert (reply.status, reply.json()) == (
        200,
        {
            "process": PROCESS_JSON,
            "text": "up\n",
            "next_cursor": 5,
            "matched_line": "up",
            "truncation": {
                "original_bytes": 9,
                "retained_bytes": 0,
                "omitted_bytes": 6,
                "omitted_lines": 0,
                "clipped_lines": 0,
                "expired_bytes": 0,
            },
            "reason": "matched",
        },
    )
    assert last_request(stack) == api.WaitWorkspaceOutputRequest(
        workspace_id=NO_CHAT,
        process_id=PROCESS_ID,
        since_cursor=2,
        condition=process_pb2.WaitCondition(
            until=process_pb2.WAIT_UNTIL_MATCH, pattern="^up", max_wait_ms=300_000
        ),
        budget=process_pb2.OutputBudget(max_bytes=4096),
    )


@pytest.mark.parametrize(
    ("query", "until"),
    [
        ("", process_pb2.WAIT_UNTIL_SNAPSHOT),
        ("?wait=0", process_pb2.WAIT_UNTIL_SNAPSHOT),
        ("?wait=1", process_pb2.WAIT_UNTIL_EXIT),
        ("?wait=1&until=output", process_pb2.WAIT_UNTIL_OUTPUT),
    ],
)
async def test_who_names_no_time_only_looks(
    stack: GatewayStack, query: str, until: "process_pb2.WaitUntil.ValueType"
) -> None:
    await stack.owner.request("GET", f"{PROCESS_PATH}/output{query}")
    assert last_request(stack).condition.until == until


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("wait=301", "wait"),
        ("wait=-1", "wait"),
        ("wait=2.5", "wait"),
        ("until=never", "until"),
        ("until=match", "pattern"),
        ("until=exit&pattern=x", "pattern"),
        (f"until=match&pattern={'x' * 1001}", "pattern"),
        ("cursor=x", "cursor"),
        ("max_bytes=0", "max_bytes"),
    ],
)
async def test_a_wait_that_cannot_be_is_told_by_parameter(
    stack: GatewayStack, query: str, parameter: str
) -> None:
    reply = await stack.owner.request("GET", f"{PROCESS_PATH}/output?{query}")
    assert (reply.status, reply.json()["errors"][0]["parameter"]) == (422, parameter)
    assert stack.chatd.calls == []


async def test_input_is_text_or_bytes_and_may_end(stack: GatewayStack) -> None:
    stack.chatd.answers["WriteWorkspaceStdin"] = api.WriteWorkspaceStdinResponse(process=PROCESS)
    given: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        ({"text": "é\n"}, {"text": "é\n"}),
        ({"data": "/wA="}, {"data": b"\xff\0"}),
        ({"end_of_input": True}, {"end_of_input": True}),
    )
    for body, sent in given:
        reply = await stack.owner.request("POST", f"{PROCESS_PATH}/stdin", body, KEY)
        assert (reply.status, reply.json()) == (200, PROCESS_JSON)
        assert last_request(stack) == api.WriteWorkspaceStdinRequest(
            request_id="key-1",
            workspace_id=NO_CHAT,
            process_id=PROCESS_ID,
            **sent,
        )


async def test_a_signal_may_be_followed_by_a_kill(stack: GatewayStack) -> None:
    stack.chatd.answers["SignalWorkspaceProcess"] = api.SignalWorkspaceProcessResponse(
        process=PROCESS
    )
    body = {"signal": "terminate", "escalate_after_ms": 500}
    reply = await stack.owner.request("POST", f"{PROCESS_PATH}/signal", body, KEY)
    assert (reply.status, reply.json()) == (200, PROCESS_JSON)
    assert last_request(stack) == api.SignalWorkspaceProcessRequest(
        request_id="key-1",
        workspace_id=NO_CHAT,
        process_id=PROCESS_ID,
        signal=process_pb2.PROCESS_SIGNAL_TERMINATE,
        escalate_after_ms=500,
    )


@pytest.mark.parametrize(
    ("problem", "status", "code", "facts"),
    [
        (
            Problem(
                grpc.StatusCode.NOT_FOUND,
                "WORKSPACE_NOT_FOUND",
                "There is no such workspace",
                {"workspace_id": NO_CHAT},
            ),
            404,
            "CHAT_NOT_FOUND",
            {"detail": "There is no such chat, or you may not see it."},
        ),
        (
            Problem(
                grpc.StatusCode.NOT_FOUND,
                "WORKSPACE_NOT_FOUND",
                "There is no such workspace",
                {"workspace_id": PROCESS_ID},
            ),
            404,
            "WORKSPACE_NOT_FOUND",
            {},
        ),
        (
            Problem(grpc.StatusCode.NOT_FOUND, "PROCESS_NOT_FOUND", "no", {"process_id": "p"}),
            404,
            "PROCESS_NOT_FOUND",
            {"process_id": "p"},
        ),
        (
            Problem(grpc.StatusCode.FAILED_PRECONDITION, "PROCESS_NOT_RUNNING", "it ended"),
            409,
            "PROCESS_NOT_RUNNING",
            {"retryable": False},
        ),
        (
            Problem(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "TOO_MANY_PROCESSES",
                "end one",
                {"scope": "workspace", "limit": "64"},
            ),
            429,
            "TOO_MANY_PROCESSES",
            {"scope": "workspace", "limit": 64},
        ),
        (
            Problem(grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED", "choose a new one"),
            422,
            "REQUEST_ID_REUSED",
            {"retryable": False},
        ),
        (
            Problem(
                grpc.StatusCode.DATA_LOSS, "OUTPUT_GONE", "gone", metadata={"oldest_cursor": "7"}
            ),
            410,
            "OUTPUT_GONE",
            {"oldest_cursor": 7, "retryable": False},
        ),
        (
            Problem(grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED", "not yet"),
            501,
            "UNIMPLEMENTED",
            {"detail": "This is not served yet."},
        ),
        (
            Problem(grpc.StatusCode.UNAVAILABLE, "UPSTREAM_UNAVAILABLE", "The node is away."),
            503,
            "UPSTREAM_UNAVAILABLE",
            {"detail": "The node is away.", "retryable": True},
        ),
    ],
)
async def test_problems_keep_their_kind(
    stack: GatewayStack, problem: Problem, status: int, code: str, facts: dict[str, Any]
) -> None:
    stack.chatd.refusal = problem
    reply = await stack.owner.request("POST", f"{PROCESS_PATH}/signal", {"signal": "kill"})
    document = reply.json()
    assert (reply.status, document["code"]) == (status, code)
    assert facts.items() <= document.items()


async def test_faults_that_a_node_finds_are_told_where_the_client_put_them(
    stack: GatewayStack,
) -> None:
    output = f"{PROCESS_PATH}/output"
    for field, method, path, body, place in (
        ("spec.workdir", "POST", PROCESSES, {"command": "true"}, {"pointer": "/workdir"}),
        ("condition.pattern", "GET", output, None, {"parameter": "pattern"}),
        ("since_cursor", "GET", output, None, {"parameter": "cursor"}),
    ):
        stack.chatd.refusal = Problem(
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_REQUEST",
            "no",
            violations=(Violation(field, "is wrong"),),
        )
        reply = await stack.owner.request(method, path, body)
        expected = {**place, "code": "INVALID", "detail": "It is wrong."}
        assert (reply.status, reply.json()["errors"]) == (422, [expected])


async def test_what_is_no_id_names_no_process(stack: GatewayStack) -> None:
    reply = await stack.owner.request("GET", f"{PROCESSES}/1")
    assert (reply.status, reply.json()["code"]) == (404, "PROCESS_NOT_FOUND")


async def test_only_those_who_may_chat_see_processes(stack: GatewayStack) -> None:
    reply = await stack.anonymous.request("GET", PROCESSES)
    assert reply.status == 401


async def test_a_wait_ends_with_the_client_that_asked_for_it(stack: GatewayStack) -> None:
    held = stack.chatd.hold("WaitWorkspaceOutput")
    async with asyncio.timeout(5):
        async with stack.owner.asking("GET", f"{PROCESS_PATH}/output?wait=300"):
            await held.begun.wait()
        await held.ended.wait()


async def test_a_gateway_that_stops_sends_those_who_wait_away(stack: GatewayStack) -> None:
    held = stack.chatd.hold("WaitWorkspaceOutput")
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(stack.owner.request("GET", f"{PROCESS_PATH}/output?wait=300"))
        await held.begun.wait()
        stack.gateway.draining.set()
    reply = waiting.result()
    assert (reply.status, reply.json()["code"], reply.headers["retry-after"]) == (
        503,
        "DRAINING",
        "1",
    )
