"""Approval rules over HTTP, and what chatd is asked for them."""

from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import approval_pb2
from parley.api.chat.v1 import approval_service_pb2 as api
from parley.rpc import Problem
from support.gateway.chats import last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
ID = "00000000-0000-0000-0000-0000000000c1"
CHAT_ID = "00000000-0000-0000-0000-0000000000c2"
SCOPES: list[tuple[str, Any, dict[str, Any]]] = [
    ("/api/v1/approval-rules", approval_pb2.APPROVAL_SCOPE_INSTALLATION, {}),
    ("/api/v1/me/approval-rules", approval_pb2.APPROVAL_SCOPE_USER, {}),
    (
        f"/api/v1/chats/{CHAT_ID}/approval-rules",
        approval_pb2.APPROVAL_SCOPE_CHAT,
        {"chat_id": CHAT_ID},
    ),
]
BODY = {
    "effect": "ask",
    "tool": "execute",
    "modes": ["ordinary", "plan"],
    "command": "git push *",
    "arguments": {"workdir": "/a/*"},
    "reason": "Others see it.",
}
GIVEN = approval_pb2.ApprovalRule(
    effect=approval_pb2.APPROVAL_EFFECT_ASK,
    tool="execute",
    modes=[approval_pb2.APPROVAL_MODE_ORDINARY, approval_pb2.APPROVAL_MODE_PLAN],
    command="git push *",
    arguments={"workdir": "/a/*"},
    reason="Others see it.",
)


def stored(scope: Any, place: dict[str, Any]) -> approval_pb2.ApprovalRule:
    created_at = Timestamp(seconds=1767225600)
    rule = approval_pb2.ApprovalRule(id=ID, scope=scope, etag="3", created_at=created_at, **place)
    rule.MergeFrom(GIVEN)
    return rule


@pytest.mark.parametrize(("path", "scope", "place"), SCOPES)
async def test_a_rule_is_made_listed_changed_and_deleted(
    stack: GatewayStack, path: str, scope: Any, place: dict[str, Any]
) -> None:
    stack.chatd.answers["CreateApprovalRule"] = api.CreateApprovalRuleResponse(
        rule=stored(scope, place)
    )
    made = await stack.owner.request("POST", path, BODY, headers=KEY)
    assert (made.status, made.headers["etag"]) == (201, '"3"')
    assert made.headers["location"] == f"{path}/{ID}"
    name = approval_pb2.ApprovalScope.Name(scope).removeprefix("APPROVAL_SCOPE_").lower()
    shown = {
        **BODY,
        "id": ID,
        "scope": name,
        "server_id": None,
        "rememberable": False,
        "after_outside_content": False,
        "remembered": False,
        "chat_id": place.get("chat_id"),
        "created_at": "2026-01-01T00:00:00Z",
    }
    assert made.json() == shown
    assert last_request(stack) == api.CreateApprovalRuleRequest(
        request_id="key-1", scope=scope, rule=GIVEN, **place
    )
    stack.chatd.answers["ListApprovalRules"] = api.ListApprovalRulesResponse(
        rules=[stored(scope, place)], next_page_token="more"
    )
    listed = await stack.owner.request("GET", f"{path}?limit=5&cursor=here")
    assert listed.json() == {"items": [shown], "next_cursor": "more"}
    assert last_request(stack) == api.ListApprovalRulesRequest(
        scope=scope, page_size=5, page_token="here", **place
    )
    stack.chatd.answers["UpdateApprovalRule"] = api.UpdateApprovalRuleResponse(
        rule=stored(scope, place)
    )
    changed = await stack.owner.request(
        "PATCH", f"{path}/{ID}", {"tool": None, "effect": "deny"}, headers={"If-Match": '"2"'}
    )
    assert (changed.status, changed.headers["etag"]) == (200, '"3"')
    asked = last_request(stack)
    assert asked.rule == approval_pb2.ApprovalRule(
        id=ID, effect=approval_pb2.APPROVAL_EFFECT_DENY, etag="2"
    )
    assert (asked.scope, asked.chat_id) == (scope, place.get("chat_id", ""))
    assert sorted(asked.update_mask.paths) == FieldMask(paths=["effect", "tool"]).paths
    stack.chatd.answers["DeleteApprovalRule"] = api.DeleteApprovalRuleResponse()
    gone = await stack.owner.request("DELETE", f"{path}/{ID}", headers=KEY)
    assert gone.status == 204
    assert last_request(stack) == api.DeleteApprovalRuleRequest(
        request_id="key-1", scope=scope, rule_id=ID, **place
    )


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"effect": "maybe"}, "/effect"),
        ({}, "/effect"),
        ({"effect": "ask", "modes": ["party"]}, "/modes/0"),
        ({"effect": "ask", "tool": "x" * 129}, "/tool"),
        ({"effect": "ask", "server_id": "x"}, "/server_id"),
        ({"effect": "ask", "command": "x" * 1001}, "/command"),
        ({"effect": "ask", "arguments": ["x"]}, "/arguments"),
        ({"effect": "ask", "remembered": True}, "/remembered"),
        ({"effect": "ask", "scope": "user"}, "/scope"),
    ],
)
async def test_a_wrong_member_is_named_by_its_pointer(
    stack: GatewayStack, body: dict[str, Any], pointer: str
) -> None:
    refused = await stack.owner.request("POST", "/api/v1/me/approval-rules", body, headers=KEY)
    assert refused.status == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]


async def test_a_full_scope_and_a_foreign_chat_have_their_problems(stack: GatewayStack) -> None:
    stack.chatd.refusal = Problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_RULES", "full", {"rules_max": "100"}
    )
    refused = await stack.owner.request("POST", "/api/v1/me/approval-rules", BODY, headers=KEY)
    assert (refused.status, refused.json()["code"], refused.json()["rules_max"]) == (
        409,
        "TOO_MANY_RULES",
        "100",
    )
    stack.chatd.refusal = None
    for path in (
        f"/api/v1/chats/x/approval-rules/{ID}",
        f"/api/v1/chats/{CHAT_ID}/approval-rules/x",
    ):
        gone = await stack.owner.request("DELETE", path, headers=KEY)
        assert gone.status == 404
