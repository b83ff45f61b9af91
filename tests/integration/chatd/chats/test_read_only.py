"""A reader of a shared chat is refused as such by every service that changes chats."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message_factory import GetMessageClass

import parley.api.chat.v1
from parley.api.chat.v1 import (
    approval_pb2,
    approval_service_pb2,
    goal_pb2,
    schedule_pb2,
    schedule_service_pb2,
)
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.workspace.v1 import workspace_server_service_pb2, workspace_service_pb2
from support.chatd.chats.chat_people import BOB_ID
from support.chatd.chats.served_chats import ServedChats

ABSENT = "00000000-0000-0000-0000-00000000dead"
#: It has its own test, beside those of the reading methods.
WITH_OWN_TEST = {"ChatService"}
#: They change nothing, and are for the owner as well.
POSTED = {"PreviewRevert", "ReadWorkspaceServerResource", "GetWorkspaceServerPrompt"}
GIVEN: dict[str, dict[str, Any]] = {
    "AnswerAction": {"action_id": ABSENT},
    "RevertChat": {"message_id": 1},
    "PreviewRevert": {"message_id": 1},
    "UndoRevert": {"revert_id": ABSENT},
    "SetGoal": {"goal": goal_pb2.Goal(text="Mend it.", check_command="true")},
    "CancelMonitor": {"monitor_id": ABSENT},
    "TrustWorkspaceServer": {"name": "n", "digest": "d"},
    "UntrustWorkspaceServer": {"name": "n"},
    "ReadWorkspaceServerResource": {"name": "n", "uri": "u:1"},
    "GetWorkspaceServerPrompt": {"name": "n", "prompt": "p"},
    "CreateApprovalRule": {
        "scope": approval_pb2.APPROVAL_SCOPE_CHAT,
        "rule": approval_pb2.ApprovalRule(effect=approval_pb2.APPROVAL_EFFECT_ASK),
    },
    "UpdateApprovalRule": {
        "scope": approval_pb2.APPROVAL_SCOPE_CHAT,
        "rule": approval_pb2.ApprovalRule(id=ABSENT),
        "update_mask": FieldMask(paths=["effect"]),
    },
    "DeleteApprovalRule": {"scope": approval_pb2.APPROVAL_SCOPE_CHAT, "rule_id": ABSENT},
}


def services() -> list[ServiceDescriptor]:
    """Return the services of chats, and that of the servers of their workspaces."""
    package = parley.api.chat.v1
    modules = [
        import_module(f"{package.__name__}.{module.name}")
        for module in iter_modules(package.__path__)
        if module.name.endswith("_service_pb2")
    ]
    return [
        service
        for module in (*modules, workspace_server_service_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
        if service.name not in WITH_OWN_TEST
    ]


CHANGES: list[MethodDescriptor] = [
    method
    for service in services()
    for method in service.methods
    if {"chat_id", "request_id"} <= set(method.input_type.fields_by_name) or method.name in POSTED
]


@pytest.fixture
async def shared_chat_id(served: ServedChats) -> str:
    """A chat of Ann that Bob may read."""
    chat = await served.ann.create()
    share = api.Share(user_id=BOB_ID)
    await served.ann.ask(api.SetSharesRequest(request_id="s", chat_id=chat.id, shares=[share]))
    return str(chat.id)


async def refusal(served: ServedChats, request: Any) -> tuple[grpc.StatusCode, str]:
    refused = await served.bob.refusal(request)
    return refused.status, refused.reason


def request_of(method: MethodDescriptor, chat_id: str) -> Any:
    kind: Any = GetMessageClass(method.input_type)
    key = {} if method.name in POSTED else {"request_id": "r"}
    return kind(chat_id=chat_id, **key, **GIVEN.get(method.name, {}))


async def test_a_reader_is_told_that_a_chat_is_read_only_and_others_that_there_is_none(
    served: ServedChats, shared_chat_id: str
) -> None:
    hidden = (await served.ann.create()).id
    told = {
        method.name: (
            await refusal(served, request_of(method, shared_chat_id)),
            await refusal(served, request_of(method, hidden)),
        )
        for method in CHANGES
    }
    read_only = (grpc.StatusCode.PERMISSION_DENIED, "CHAT_READ_ONLY")
    missing = (grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND")
    assert told == {method.name: (read_only, missing) for method in CHANGES}
    assert {"SetGoal", "CancelMonitor", "RefreshInstructions", "RevertChat"} <= set(told)


async def test_a_reader_of_a_chat_does_not_apply_the_changes_of_its_agents(
    served: ServedChats, shared_chat_id: str
) -> None:
    hidden = (await served.ann.create()).id
    for chat_id, told in (
        (shared_chat_id, (grpc.StatusCode.PERMISSION_DENIED, "CHAT_READ_ONLY")),
        (hidden, (grpc.StatusCode.NOT_FOUND, "WORKSPACE_NOT_FOUND")),
    ):
        merge = workspace_service_pb2.MergeForkRequest(request_id="r", fork_workspace_id=chat_id)
        assert await refusal(served, merge) == told


async def test_a_schedule_sends_to_no_chat_that_its_owner_may_only_read(
    served: ServedChats, shared_chat_id: str
) -> None:
    given: dict[str, Any] = {"text": "Look.", "cron": "0 0 1 1 *"}
    own = schedule_service_pb2.CreateScheduleRequest(
        request_id="o", schedule=schedule_pb2.Schedule(**given)
    )
    made = (await served.bob.ask(own)).schedule
    read_only = (grpc.StatusCode.PERMISSION_DENIED, "CHAT_READ_ONLY")
    for request in (
        schedule_service_pb2.CreateScheduleRequest(
            request_id="c", schedule=schedule_pb2.Schedule(chat_id=shared_chat_id, **given)
        ),
        schedule_service_pb2.UpdateScheduleRequest(
            request_id="u",
            schedule=schedule_pb2.Schedule(id=made.id, chat_id=shared_chat_id),
            update_mask=FieldMask(paths=["chat_id"]),
        ),
    ):
        assert await refusal(served, request) == read_only


async def test_the_rules_of_a_users_own_are_no_matter_of_a_chat(served: ServedChats) -> None:
    request = approval_service_pb2.DeleteApprovalRuleRequest(
        request_id="d", scope=approval_pb2.APPROVAL_SCOPE_USER, rule_id=ABSENT
    )
    assert (await refusal(served, request))[0] is grpc.StatusCode.NOT_FOUND
