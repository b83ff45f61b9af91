"""Checkpoints of a workspace over HTTP, and what chatd is asked for them."""

from typing import Any

import grpc
import pytest

from parley.api.workspace.v1 import git_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.rpc import Problem
from support.gateway.chats import NO_CHAT, last_request
from support.gateway.stack import GatewayStack

CHECKPOINTS = f"/api/v1/chats/{NO_CHAT}/checkpoints"
CHECKPOINT = git_pb2.GitCheckpoint(
    ref="refs/agent/workspace/one", repository="r", commit="c" * 40, label="one"
)
CHECKPOINT.created_at.FromSeconds(1767225600)
CHECKPOINT_JSON: dict[str, Any] = {
    "ref": "refs/agent/workspace/one",
    "repository": "r",
    "commit": "c" * 40,
    "parent_commit": None,
    "label": "one",
    "created_at": "2026-01-01T00:00:00Z",
}
FILE = git_pb2.GitFile(path="a.py", state=git_pb2.GIT_FILE_STATE_DELETED, deleted_lines=3)
FILE_JSON: dict[str, Any] = {
    "path": "a.py",
    "old_path": None,
    "state": "deleted",
    "added_lines": 0,
    "deleted_lines": 3,
    "binary": False,
    "staged": False,
}


async def test_checkpoints_are_listed(stack: GatewayStack) -> None:
    stack.chatd.answers["ListWorkspaceCheckpoints"] = api.ListWorkspaceCheckpointsResponse(
        checkpoints=[CHECKPOINT], next_page_token="50"
    )
    reply = await stack.owner.request("GET", f"{CHECKPOINTS}?repository=r&limit=5&cursor=10")
    document = reply.json()
    assert (document["items"], document["next_cursor"]) == ([CHECKPOINT_JSON], "50")
    assert last_request(stack) == api.ListWorkspaceCheckpointsRequest(
        workspace_id=NO_CHAT, repository="r", page_size=5, page_token="10"
    )


async def test_a_checkpoint_is_made_under_the_key_of_the_client(stack: GatewayStack) -> None:
    stack.chatd.answers["CreateWorkspaceCheckpoint"] = api.CreateWorkspaceCheckpointResponse(
        checkpoint=CHECKPOINT, files=[FILE]
    )
    body = {"label": "one", "repository": "r"}
    reply = await stack.owner.request("POST", CHECKPOINTS, body, {"Idempotency-Key": "k"})
    assert (reply.status, reply.json()) == (201, {**CHECKPOINT_JSON, "files": [FILE_JSON]})
    assert last_request(stack) == api.CreateWorkspaceCheckpointRequest(
        request_id="k", workspace_id=NO_CHAT, repository="r", label="one"
    )


async def test_a_checkpoint_is_restored_as_far_as_is_asked(stack: GatewayStack) -> None:
    stack.chatd.answers["RestoreWorkspaceCheckpoint"] = api.RestoreWorkspaceCheckpointResponse(
        files=[FILE], previous=CHECKPOINT
    )
    body = {
        "ref": CHECKPOINT.ref,
        "paths": ["a.py"],
        "if_unchanged_since_ref": "refs/agent/workspace/two",
        "remove_later_files": True,
    }
    key = {"Idempotency-Key": "k"}
    reply = await stack.owner.request("POST", f"{CHECKPOINTS}/restore", body, key)
    assert (reply.status, reply.json()) == (
        200,
        {"files": [FILE_JSON], "previous": CHECKPOINT_JSON},
    )
    assert last_request(stack) == api.RestoreWorkspaceCheckpointRequest(
        request_id="k",
        workspace_id=NO_CHAT,
        ref=CHECKPOINT.ref,
        paths=["a.py"],
        if_unchanged_since_ref="refs/agent/workspace/two",
        remove_later_files=True,
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("", {}),
        ("", {"label": "a/b"}),
        ("", {"label": "one\n"}),
        ("", {"label": "one", "more": 1}),
        ("/restore", {}),
        ("/restore", {"ref": ""}),
        ("/restore", {"ref": "x", "paths": ["a"] * 1001}),
    ],
)
async def test_what_is_outside_of_its_limits_reaches_no_node(
    stack: GatewayStack, path: str, body: dict[str, object]
) -> None:
    reply = await stack.owner.request("POST", CHECKPOINTS + path, body)
    assert reply.status == 422


async def test_a_checkpoint_that_is_not_there_is_told_so(stack: GatewayStack) -> None:
    stack.chatd.refusal = Problem(
        grpc.StatusCode.NOT_FOUND, "CHECKPOINT_NOT_FOUND", "None.", {"checkpoint": "x"}
    )
    reply = await stack.owner.request("POST", f"{CHECKPOINTS}/restore", {"ref": "x"})
    assert (reply.status, reply.json()["code"]) == (404, "CHECKPOINT_NOT_FOUND")
