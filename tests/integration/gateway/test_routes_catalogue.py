"""Templates, workspaces, quotas and nodes over HTTP, and what chatd is asked for them."""

import json
from typing import Any

import grpc
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.workspace.v1 import (
    node_pb2,
    node_service_pb2,
    sandbox_pb2,
    template_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.rpc import Problem
from support.gateway.chats import NO_CHAT, last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
ID = "00000000-0000-0000-0000-0000000000c1"
TEMPLATES = "/api/v1/templates"
WORKSPACES = "/api/v1/workspaces"
TEMPLATE = template_pb2.Template(
    template_id=ID,
    name="go",
    kind=template_pb2.WORKSPACE_KIND_GIT,
    git=template_pb2.GitSource(url="https://example.org/go.git"),
    parameters=[
        template_pb2.TemplateParameter(name="ref", type=template_pb2.PARAMETER_TYPE_STRING)
    ],
    enabled_for_agents=True,
    network=sandbox_pb2.NetworkPolicy(access=sandbox_pb2.NETWORK_ACCESS_PROXY, presets=["pypi"]),
    etag="3",
)
SUMMARY = template_pb2.TemplateSummary(
    template_id=ID, name="go", kind=template_pb2.WORKSPACE_KIND_GIT, active_users=2
)
WORKSPACE = workspace_pb2.Workspace(
    workspace_id=ID,
    name="one",
    owner_id=NO_CHAT,
    kind=template_pb2.WORKSPACE_KIND_GIT,
    state=workspace_pb2.WORKSPACE_STATE_FAILED,
    failure=workspace_pb2.WorkspaceFailure(
        kind=workspace_pb2.WORKSPACE_FAILURE_KIND_NODE_LOST, message="gone", recreatable=True
    ),
    epoch=2,
    ttl_ms=1000,
)
WORKSPACE.created_at.FromSeconds(1767225600)


async def test_templates_are_listed_best_first_without_hints_for_models(
    stack: GatewayStack,
) -> None:
    stack.chatd.answers["ListTemplates"] = api.ListTemplatesResponse(
        templates=[SUMMARY],
        recommended_template_id=ID,
        next_step="Call create_workspace with it.",
    )
    reply = await stack.owner.request("GET", f"{TEMPLATES}?query=go&for_agents=true&limit=5")
    document = reply.json()
    assert document["recommended_template_id"] == ID
    assert "create_workspace" not in reply.body.decode()
    (item,) = document["items"]
    assert (item["name"], item["kind"], item["active_users"]) == ("go", "git", 2)
    assert "readme" not in item
    assert last_request(stack) == api.ListTemplatesRequest(page_size=5, query="go", for_agents=True)


async def test_a_template_is_created_read_changed_and_forgotten(stack: GatewayStack) -> None:
    stack.chatd.answers["CreateTemplate"] = api.CreateTemplateResponse(template=TEMPLATE)
    body: dict[str, Any] = {
        "name": "go",
        "kind": "git",
        "git": {"url": "https://example.org/go.git"},
        "parameters": [{"name": "ref"}],
        "network": {"access": "proxy", "presets": ["pypi"]},
    }
    reply = await stack.owner.request("POST", TEMPLATES, body, KEY)
    assert (reply.status, reply.headers["location"]) == (201, f"{TEMPLATES}/{ID}")
    sent = template_pb2.Template()
    sent.CopyFrom(TEMPLATE)
    sent.template_id = sent.etag = ""
    assert last_request(stack) == api.CreateTemplateRequest(request_id="key-1", template=sent)

    stack.chatd.answers["GetTemplate"] = api.GetTemplateResponse(template=TEMPLATE)
    read = (await stack.owner.request("GET", f"{TEMPLATES}/{ID}")).json()
    assert read["parameters"][0]["name"] == "ref"

    stack.chatd.answers["UpdateTemplate"] = api.UpdateTemplateResponse(template=TEMPLATE)
    reply = await stack.owner.request(
        "PATCH", f"{TEMPLATES}/{ID}", {"description": "new"}, {**KEY, "If-Match": '"3"'}
    )
    assert reply.status == 200
    assert last_request(stack) == api.UpdateTemplateRequest(
        request_id="key-1",
        template=template_pb2.Template(template_id=ID, description="new", etag="3"),
        update_mask=FieldMask(paths=["description"]),
    )

    stack.chatd.answers["DeleteTemplate"] = api.DeleteTemplateResponse()
    assert (await stack.owner.request("DELETE", f"{TEMPLATES}/{ID}")).status == 204


async def test_a_workspace_is_asked_for_and_shown_as_it_is(stack: GatewayStack) -> None:
    stack.chatd.answers["CreateWorkspace"] = api.CreateWorkspaceResponse(
        workspace=WORKSPACE, outcome=api.LIFECYCLE_OUTCOME_BEGUN
    )
    body = {"template_id": ID, "parameters": {"ref": "main"}, "ttl_ms": 0, "chat_id": NO_CHAT}
    reply = await stack.owner.request("POST", WORKSPACES, body, KEY)
    assert (reply.status, reply.headers["location"]) == (202, f"{WORKSPACES}/{ID}")
    assert last_request(stack) == api.CreateWorkspaceRequest(
        request_id="key-1", template_id=ID, parameters={"ref": "main"}, ttl_ms=0, chat_id=NO_CHAT
    )
    shown = reply.json()
    assert (shown["state"], shown["outcome"], shown["deadline"]) == ("failed", "begun", None)
    assert shown["failure"] == {"kind": "node_lost", "message": "gone", "recreatable": True}

    stack.chatd.answers["ListWorkspaces"] = api.ListWorkspacesResponse(workspaces=[WORKSPACE])
    listed = await stack.owner.request("GET", f"{WORKSPACES}?state=ready&state=busy&limit=2")
    assert [each["id"] for each in listed.json()["items"]] == [ID]
    assert last_request(stack) == api.ListWorkspacesRequest(
        page_size=2,
        states=[workspace_pb2.WORKSPACE_STATE_READY, workspace_pb2.WORKSPACE_STATE_BUSY],
    )
    assert (await stack.owner.request("GET", f"{WORKSPACES}?state=odd")).status == 422


async def test_a_workspace_is_started_stopped_forked_merged_and_removed(
    stack: GatewayStack,
) -> None:
    path = f"{WORKSPACES}/{ID}"
    asked: dict[str, Any] = {"request_id": "key-1", "workspace_id": ID}
    under_way: dict[str, Any] = {"workspace": WORKSPACE, "outcome": api.LIFECYCLE_OUTCOME_UNDER_WAY}
    answers = stack.chatd.answers
    answers["StartWorkspace"] = api.StartWorkspaceResponse(**under_way)
    answers["StopWorkspace"] = api.StopWorkspaceResponse(**under_way)
    answers["DeleteWorkspace"] = api.DeleteWorkspaceResponse(**under_way)
    answers["ForkWorkspace"] = api.ForkWorkspaceResponse(workspace=WORKSPACE)
    answers["SetWorkspaceTtl"] = api.SetWorkspaceTtlResponse(workspace=WORKSPACE)
    conflict = workspace_pb2.MergeConflict(path="a", kind=workspace_pb2.MERGE_CONFLICT_KIND_CONTENT)
    report = workspace_pb2.MergeReport(conflicts=[conflict])
    answers["MergeFork"] = api.MergeForkResponse(report=report)

    started = await stack.owner.request("POST", f"{path}/start", None, KEY)
    assert (started.status, started.json()["outcome"]) == (202, "under_way")
    assert last_request(stack) == api.StartWorkspaceRequest(**asked)
    await stack.owner.request("POST", f"{path}/stop", {"grace_ms": 0}, KEY)
    assert last_request(stack) == api.StopWorkspaceRequest(**asked, grace_ms=0)
    await stack.owner.request("PUT", f"{path}/ttl", {"ttl_ms": 60000}, KEY)
    assert last_request(stack) == api.SetWorkspaceTtlRequest(**asked, ttl_ms=60000)
    await stack.owner.request("POST", f"{path}/fork", {"mode": "overlay"}, KEY)
    assert last_request(stack) == api.ForkWorkspaceRequest(
        request_id="key-1", source_workspace_id=ID, mode=workspace_pb2.FORK_MODE_OVERLAY
    )
    merged = await stack.owner.request("POST", f"{path}/merge", {"dry_run": True}, KEY)
    assert merged.json() == {
        "applied": False,
        "merged_paths": [],
        "conflicts": [{"path": "a", "kind": "content", "preview": None}],
        "omitted": 0,
        "patches": [],
        "left_out_paths": [],
        "applied_merges": [],
    }
    await stack.owner.request("DELETE", f"{path}?force=true", None, KEY)
    assert last_request(stack) == api.DeleteWorkspaceRequest(**asked, force=True)


async def test_a_used_up_quota_is_told_with_its_structure(stack: GatewayStack) -> None:
    facts = {"dimension": "live_workspaces", "used": "5", "limit": "5", "remedy": "stop one"}
    stack.chatd.refusal = Problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXHAUSTED", "You have 5 of 5.", facts
    )
    reply = await stack.owner.request("POST", WORKSPACES, {"template_id": ID})
    assert (reply.status, reply.json()["code"]) == (429, "QUOTA_EXHAUSTED")
    told = {"dimension": "live_workspaces", "used": 5, "limit": 5, "remedy": "stop one"}
    assert told.items() <= reply.json().items()
    stack.chatd.refusal = None
    stack.chatd.answers["GetQuota"] = api.GetQuotaResponse(
        dimensions=[
            workspace_pb2.QuotaUsage(
                dimension=workspace_pb2.QUOTA_DIMENSION_LIVE_WORKSPACES,
                used=5,
                limit=5,
                how_to_free="stop one",
            )
        ]
    )
    assert (await stack.owner.request("GET", "/api/v1/quota")).json() == {
        "items": [
            {
                "dimension": "live_workspaces",
                "used": 5,
                "limit": 5,
                "how_to_free": "stop one",
            }
        ]
    }


async def test_nodes_are_shown_to_managers_with_those_that_are_lost(stack: GatewayStack) -> None:
    node = node_pb2.Node(node_id=ID, name="n1", state=node_pb2.NODE_STATE_LOST)
    stack.chatd.answers["ListNodes"] = node_service_pb2.ListNodesResponse(nodes=[node])
    (shown,) = (await stack.owner.request("GET", "/api/v1/nodes")).json()["items"]
    assert (shown["name"], shown["state"]) == ("n1", "lost")


async def test_what_is_no_id_names_no_workspace_and_no_template(stack: GatewayStack) -> None:
    for path, code in ((WORKSPACES, "WORKSPACE_NOT_FOUND"), (TEMPLATES, "TEMPLATE_NOT_FOUND")):
        reply = await stack.owner.request("GET", f"{path}/one")
        assert (reply.status, reply.json()["code"]) == (404, code)


async def test_a_workspace_is_followed_with_its_log_and_the_warning_before_it_stops(
    stack: GatewayStack,
) -> None:
    deadline = Timestamp(seconds=1767232800)
    line = workspace_pb2.SetupLogLine(sequence=4, stage="setup", text="made", logged_at=deadline)
    stack.chatd.answers["WatchWorkspace"] = [
        api.WatchWorkspaceResponse(workspace=WORKSPACE),
        api.WatchWorkspaceResponse(log_line=line),
        api.WatchWorkspaceResponse(autostop_warning=api.AutostopWarning(deadline=deadline)),
        api.WatchWorkspaceResponse(closed=workspace_pb2.StreamEnd()),
    ]
    reply = await stack.owner.request("GET", f"{WORKSPACES}/{ID}/events?after=3")
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    frames = [each for each in reply.body.decode().split("\n\n") if each.startswith("event: ")]
    told = [json.loads(each.partition("data: ")[2]) for each in frames]
    assert [each["type"] for each in told] == ["workspace", "log_line", "autostop_warning", "bye"]
    assert {each["workspace_id"] for each in told} == {ID}
    assert told[0]["workspace"]["state"] == "failed"
    assert told[1]["log_line"] == {
        "sequence": 4,
        "logged_at": "2026-01-01T02:00:00Z",
        "stage": "setup",
        "text": "made",
    }
    assert told[2]["autostop_warning"] == {"deadline": "2026-01-01T02:00:00Z"}
    assert last_request(stack) == api.WatchWorkspaceRequest(
        workspace_id=ID, after_log_sequence=3, passive=True
    )


async def test_the_policy_of_a_workspace_is_changed_by_those_who_manage(
    stack: GatewayStack,
) -> None:
    stack.chatd.answers["SetWorkspacePolicy"] = api.SetWorkspacePolicyResponse(workspace=WORKSPACE)
    body = {"network": {"access": "proxy", "presets": ["pypi"]}}
    reply = await stack.owner.request("PUT", f"{WORKSPACES}/{ID}/policy", body, KEY)
    assert (reply.status, reply.json()["id"]) == (200, ID)
    network = sandbox_pb2.NetworkPolicy(access=sandbox_pb2.NETWORK_ACCESS_PROXY, presets=["pypi"])
    assert last_request(stack) == api.SetWorkspacePolicyRequest(
        request_id="key-1", workspace_id=ID, network=network
    )
    await stack.owner.request("PUT", f"{WORKSPACES}/{ID}/policy", {"limits": {"pids": 5}}, KEY)
    assert last_request(stack) == api.SetWorkspacePolicyRequest(
        request_id="key-1", workspace_id=ID, limits=sandbox_pb2.ResourceLimits(pids=5)
    )
