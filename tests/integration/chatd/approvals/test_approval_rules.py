"""Approval rules over gRPC: who keeps which, what is refused, and what judges see of them."""

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from chatd.approvals.domain.rules import RULES_MAX, Effect, Scope, ScopeKind
from chatd.chats.domain.chat import NewMessage, PendingCall
from chatd.chats.domain.commands import (
    AnswerAction,
    Approved,
    AskedCall,
    CommitResults,
    CommitStep,
    EnterRequiresAction,
    RememberedCall,
)
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import Role as MessageRole
from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Dispatch, Executor, PendingKind
from chatd.primitives.domain.ids import ChatId, ExecutionId
from parley.api.chat.v1 import approval_pb2, chat_service_pb2
from parley.api.chat.v1 import approval_service_pb2 as api
from parley.identity import Role
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, Person
from support.chatd.chats.served_chats import ServedChats

ABSENT = "00000000-0000-0000-0000-00000000dead"
INSTALLATION = approval_pb2.APPROVAL_SCOPE_INSTALLATION
USER = approval_pb2.APPROVAL_SCOPE_USER
CHAT = approval_pb2.APPROVAL_SCOPE_CHAT
DENY = approval_pb2.APPROVAL_EFFECT_DENY
ASK = approval_pb2.APPROVAL_EFFECT_ASK
ALLOW = approval_pb2.APPROVAL_EFFECT_ALLOW


@pytest.fixture
def ada(served: ServedChats) -> Person:
    return replace(served.eve, role=Role.ADMIN)


def creating(scope: Any, request_id: str = "r", chat_id: str = "", **given: Any) -> Any:
    fields: dict[str, Any] = {"effect": DENY, **given}
    rule = approval_pb2.ApprovalRule(**fields)
    return api.CreateApprovalRuleRequest(
        request_id=request_id, scope=scope, chat_id=chat_id, rule=rule
    )


def changing(scope: Any, rule_id: str, *, etag: str = "", chat_id: str = "", **given: Any) -> Any:
    return api.UpdateApprovalRuleRequest(
        request_id="u",
        scope=scope,
        chat_id=chat_id,
        rule=approval_pb2.ApprovalRule(id=rule_id, etag=etag, **given),
        update_mask=FieldMask(paths=list(given)),
    )


def deleting(scope: Any, rule_id: str, chat_id: str = "") -> Any:
    return api.DeleteApprovalRuleRequest(
        request_id="d", scope=scope, chat_id=chat_id, rule_id=rule_id
    )


async def listed(person: Person, scope: Any, chat_id: str = "") -> list[Any]:
    request = api.ListApprovalRulesRequest(scope=scope, chat_id=chat_id)
    return list((await person.ask(request)).rules)


async def test_a_rule_is_kept_with_all_that_it_says(served: ServedChats, ada: Person) -> None:
    request = creating(
        INSTALLATION,
        effect=ASK,
        tool="execute",
        modes=[approval_pb2.APPROVAL_MODE_ORDINARY, approval_pb2.APPROVAL_MODE_PLAN],
        command="git push *",
        arguments={"workdir": "/a/*"},
        reason="Pushes are seen by others.",
        rememberable=True,
    )
    made = (await ada.ask(request)).rule
    expected = approval_pb2.ApprovalRule()
    expected.CopyFrom(request.rule)
    expected.id, expected.scope, expected.etag = made.id, INSTALLATION, "1"
    expected.created_at.CopyFrom(made.created_at)
    assert made == expected
    assert await listed(served.ann, INSTALLATION) == [made]
    assert (await ada.ask(request)).rule == made
    problem = await ada.refusal(creating(INSTALLATION, tool="other"))
    assert problem.reason == "REQUEST_ID_REUSED"
    served.servers.enabled.add(ABSENT)
    request = creating(INSTALLATION, "r2", effect=ASK, tool="wiki__*", server_id=ABSENT)
    kept = (await ada.ask(request)).rule
    assert (kept.tool, kept.server_id) == ("wiki__*", ABSENT)


async def test_each_scope_has_its_own_rules(served: ServedChats, ada: Person) -> None:
    chat = await served.ann.create()
    await ada.ask(creating(INSTALLATION, tool="a"))
    await served.ann.ask(creating(USER, tool="b"))
    await served.ann.ask(creating(CHAT, "r2", chat.id, tool="c"))
    assert [rule.tool for rule in await listed(served.ann, INSTALLATION)] == ["a"]
    assert [rule.tool for rule in await listed(served.ann, USER)] == ["b"]
    assert [rule.tool for rule in await listed(served.ann, CHAT, chat.id)] == ["c"]
    assert await listed(served.bob, USER) == []
    of_turn = await served.rules.of_turn(ANN_ID, ChatId(chat.id))
    assert [rule.tool for rule in of_turn] == ["a", "b", "c"]
    of_bob = await served.rules.of_turn(BOB_ID, ChatId(ABSENT))
    assert [rule.tool for rule in of_bob] == ["a"]


async def test_a_change_is_seen_by_the_next_judgement(served: ServedChats) -> None:
    assert await served.rules.of_turn(ANN_ID, ChatId(ABSENT)) == ()
    made = (await served.ann.ask(creating(USER, tool="a"))).rule
    request = changing(USER, made.id, etag="1", tool="b", effect=ALLOW)
    changed = (await served.ann.ask(request)).rule
    assert (changed.tool, changed.effect, changed.etag) == ("b", ALLOW, "2")
    (known,) = await served.rules.of_turn(ANN_ID, ChatId(ABSENT))
    assert (known.tool, known.effect) == ("b", Effect.ALLOW)
    stale = await served.ann.refusal(changing(USER, made.id, etag="1", tool="c"))
    assert stale.reason == "VERSION_CONFLICT"
    await served.ann.ask(deleting(USER, made.id))
    assert await served.rules.of_turn(ANN_ID, ChatId(ABSENT)) == ()
    again = await served.ann.refusal(deleting(USER, made.id))
    assert (again.status, again.reason) == (grpc.StatusCode.NOT_FOUND, "RESOURCE_NOT_FOUND")


async def test_a_change_of_another_process_is_seen_after_its_notice_or_when_it_expires(
    served: ServedChats,
) -> None:
    insert = "UPDATE chat.approval_rules SET tool = $1"
    await served.ann.ask(creating(USER, tool="a"))
    of_turn = served.rules.of_turn

    async def tools() -> list[str]:
        return [rule.tool for rule in await of_turn(ANN_ID, ChatId(ABSENT))]

    assert await tools() == ["a"]
    await served.pool.execute(insert, "b")
    assert await tools() == ["a"]
    served.rules.on_notice(f"user {ANN_ID}")
    assert await tools() == ["b"]
    await served.pool.execute(insert, "c")
    served.rules.on_resync()
    assert await tools() == ["c"]
    await served.pool.execute(insert, "d")
    served.clock.advance(60)
    assert await tools() == ["d"]


async def test_only_administrators_keep_rules_of_the_installation(
    served: ServedChats, ada: Person
) -> None:
    made = (await ada.ask(creating(INSTALLATION))).rule
    for request in (
        creating(INSTALLATION),
        changing(INSTALLATION, made.id, tool="x"),
        deleting(INSTALLATION, made.id),
    ):
        problem = await served.ann.refusal(request)
        assert (problem.status, problem.reason) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "FORBIDDEN",
        )
    assert await listed(ada, INSTALLATION) == [made]


async def test_rules_of_others_are_not_shown(served: ServedChats, ada: Person) -> None:
    chat = await served.ann.create()
    own = (await served.ann.ask(creating(USER))).rule
    of_chat = (await served.ann.ask(creating(CHAT, "r2", chat.id))).rule
    shares = [chat_service_pb2.Share(user_id=BOB_ID)]
    await served.ann.ask(
        chat_service_pb2.SetSharesRequest(request_id="s", chat_id=chat.id, shares=shares)
    )
    read_only = (grpc.StatusCode.PERMISSION_DENIED, "CHAT_READ_ONLY")
    unknown = (grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND")
    for person, for_writing in ((served.bob, read_only), (ada, unknown)):
        for request, refused in (
            (api.ListApprovalRulesRequest(scope=CHAT, chat_id=chat.id), unknown),
            (creating(CHAT, chat_id=chat.id), for_writing),
            (changing(CHAT, of_chat.id, chat_id=chat.id, tool="x"), for_writing),
            (deleting(CHAT, of_chat.id, chat.id), for_writing),
        ):
            problem = await person.refusal(request)
            assert (problem.status, problem.reason) == refused
        for scope in (USER, INSTALLATION) if person is ada else (USER,):
            for request in (changing(scope, own.id, tool="x"), deleting(scope, of_chat.id)):
                problem = await person.refusal(request)
                assert (problem.status, problem.reason) == (
                    grpc.StatusCode.NOT_FOUND,
                    "RESOURCE_NOT_FOUND",
                )
    assert await listed(served.ann, USER) == [own]
    assert await listed(served.ann, CHAT, chat.id) == [of_chat]


async def test_a_child_has_the_rules_of_its_root(served: ServedChats) -> None:
    chat = await served.ann.create()
    child_id = await served.add_child(chat.id)
    problem = await served.ann.refusal(creating(CHAT, chat_id=child_id))
    assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": "chat_id"})


async def test_the_rules_of_a_chat_go_with_it(served: ServedChats) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id)
    await served.ann.ask(creating(CHAT, chat_id=chat.id))
    await served.ann.ask(chat_service_pb2.DeleteChatRequest(request_id="d", chat_id=chat.id))
    assert await served.pool.fetchval("SELECT count(*) FROM chat.approval_rules") == 0


async def test_a_scope_has_a_hundred_rules_also_if_they_come_at_once(served: ServedChats) -> None:
    for number in range(98):
        await served.ann.ask(creating(USER, f"r{number}", tool=f"t{number}"))
    async with asyncio.TaskGroup() as group:
        late = [
            group.create_task(_outcome(served.ann, creating(USER, f"late{number}")))
            for number in range(5)
        ]
    assert sorted(task.result() for task in late) == ["", "", *["TOO_MANY_RULES"] * 3]
    problem = await served.ann.refusal(creating(USER, "more"))
    assert (problem.status, problem.metadata) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        {"rules_max": "100"},
    )
    first = api.ListApprovalRulesRequest(scope=USER, page_size=60)
    page = await served.ann.ask(first)
    rest = await served.ann.ask(
        api.ListApprovalRulesRequest(scope=USER, page_size=60, page_token=page.next_page_token)
    )
    assert (len(page.rules), len(rest.rules), rest.next_page_token) == (60, 40, "")
    assert (await served.bob.ask(creating(USER, "r"))).rule.id


async def _outcome(person: Person, request: Any) -> str:
    try:
        await person.ask(request)
    except grpc.aio.AioRpcError:
        return (await person.refusal(request)).reason
    return ""


IMPOSSIBLE: list[tuple[Any, dict[str, Any], str]] = [
    (USER, {"effect": 0}, "rule.effect"),
    (USER, {"effect": 9}, "rule.effect"),
    (USER, {"tool": "x" * 129}, "rule.tool"),
    (USER, {"tool": "a\nb"}, "rule.tool"),
    (USER, {"server_id": "x"}, "rule.server_id"),
    (USER, {"modes": [0]}, "rule.modes[0]"),
    (USER, {"modes": [9]}, "rule.modes[0]"),
    (USER, {"command": "git push; rm"}, "rule.command"),
    (USER, {"command": "echo 'x"}, "rule.command"),
    (USER, {"command": "echo $(x)"}, "rule.command"),
    (USER, {"command": "echo > x"}, "rule.command"),
    (USER, {"command": "A=1"}, "rule.command"),
    (USER, {"command": "x" * 1001}, "rule.command"),
    (USER, {"command": "ls", "tool": "write_file"}, "rule.command"),
    (USER, {"command": "ls", "tool": "exec*x"}, "rule.command"),
    (USER, {"command": "ls", "server_id": ABSENT}, "rule.command"),
    (USER, {"tool": "execute", "server_id": ABSENT}, "rule.server_id"),
    (USER, {"tool": "write file"}, "rule.tool"),
    (USER, {"tool": "execute!"}, "rule.tool"),
    (USER, {"arguments": {str(number): "*" for number in range(11)}}, "rule.arguments"),
    (USER, {"arguments": {"path": "x" * 501}}, "rule.arguments.path"),
    (USER, {"arguments": {"path": "a\0b"}}, "rule.arguments.path"),
    (USER, {"reason": "x" * 501}, "rule.reason"),
    (USER, {"effect": ASK, "rememberable": True}, "rule.rememberable"),
    (INSTALLATION, {"effect": DENY, "rememberable": True}, "rule.rememberable"),
    (USER, {"effect": ALLOW, "after_outside_content": True}, "rule.after_outside_content"),
    (INSTALLATION, {"effect": ASK, "after_outside_content": True}, "rule.after_outside_content"),
    (approval_pb2.APPROVAL_SCOPE_UNSPECIFIED, {}, "scope"),
    (9, {}, "scope"),
    (USER, {"chat_id": ABSENT}, "chat_id"),
    (CHAT, {"chat_id": "x"}, "chat_id"),
    (CHAT, {}, "chat_id"),
]


async def test_a_rule_that_cannot_be_is_refused_by_the_name_of_its_field(
    served: ServedChats, ada: Person
) -> None:
    for scope, given, field in IMPOSSIBLE:
        problem = await ada.refusal(creating(scope, **given))
        assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": field}), given
    assert await served.pool.fetchval("SELECT count(*) FROM chat.approval_rules") == 0


@pytest.mark.parametrize("known", ["enabled", "disabled"])
async def test_tools_that_nobody_offers_yet_may_have_rules(served: ServedChats, known: str) -> None:
    getattr(served.servers, known).add(ABSENT)
    made = (await served.ann.ask(creating(USER, tool="tickets__*", server_id=ABSENT))).rule
    assert (made.tool, made.server_id) == ("tickets__*", ABSENT)


async def test_a_rule_for_a_server_that_does_not_exist_is_refused_unless_it_has_it_already(
    served: ServedChats,
) -> None:
    request = creating(USER, tool="tickets__*", server_id=ABSENT)
    problem = await served.ann.refusal(request)
    assert (problem.reason, [each.field for each in problem.violations]) == (
        "UNKNOWN_ID",
        ["rule.server_id"],
    )
    served.servers.enabled.add(ABSENT)
    made = (await served.ann.ask(request)).rule
    served.servers.enabled.clear()
    made.tool = "other__*"
    changing = api.UpdateApprovalRuleRequest(request_id="u", scope=USER, rule=made)
    changing.update_mask.paths.extend(["server_id", "tool"])
    assert (await served.ann.ask(changing)).rule.tool == "other__*"
    served.servers.is_available = False
    unchecked = await served.ann.refusal(creating(USER, "r9", tool="a__*", server_id=ABSENT))
    assert unchecked.reason == "CHECK_UNAVAILABLE"


async def test_all_that_is_wrong_with_a_rule_is_told_at_once(served: ServedChats) -> None:
    request = creating(USER, effect=0, tool="a\nb", command="a; b")
    problem = await served.ann.refusal(request)
    assert [each.field for each in problem.violations] == [
        "rule.effect",
        "rule.tool",
        "rule.command",
    ]


def remembered(chat_id: str, digest: str, *, is_for_tainted: bool = False) -> RememberedCall:
    return RememberedCall(
        ABSENT[:-1] + digest,
        ChatId(chat_id),
        tool="execute",
        server_id="",
        reason="git push",
        is_for_tainted=is_for_tainted,
        digest=digest,
        rules_max=RULES_MAX,
    )


async def remember(served: ServedChats, chat_id: str, *calls: RememberedCall) -> None:
    """Let a chat ask for approvals, one after the other, and approve them for the chat."""
    chats = served.stores.chats
    for number, remembered_call in enumerate(calls):
        state = await served.state(chat_id)
        action_id = ExecutionId(str(uuid.uuid5(uuid.UUID(chat_id), f"action {number}")))
        call = ToolCall(f"call {number}", "execute", "{}")
        pending = PendingCall(call.tool_call_id, "execute", action_id, kind=PendingKind.APPROVAL)
        message = NewMessage(MessageRole.ASSISTANT, (call,))
        message_id = state.next_message_id
        step = CommitStep(fence_of(state), (message,), asked=(AskedCall(pending, call),))
        state = await chats.apply(ChatId(chat_id), step)
        await chats.apply(ChatId(chat_id), EnterRequiresAction(fence_of(state)))
        dispatch = Dispatch(action_id, call, Executor.TOOLRUNNER, "j1")
        approved = Approved(message_id, dispatch, remembered_call)
        worker_id = state.worker_id
        answer = AnswerAction(action_id, approved, "{}", ANN_ID, worker_id)
        state = await chats.apply(ChatId(chat_id), answer)
        result = ToolResult(call.tool_call_id, "execute", "{}", ToolOutcome.DONE)
        await chats.apply(ChatId(chat_id), CommitResults(fence_of(state), (result,)))


async def test_a_remembered_approval_is_kept_once_and_can_only_be_deleted(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    once, twice = remembered(chat.id, "1"), remembered(chat.id, "1", is_for_tainted=True)
    await remember(served, chat.id, once, twice, remembered(chat.id, "2"))
    first, second = await listed(served.ann, CHAT, chat.id)
    assert (first.remembered, first.after_outside_content) == (True, True)
    assert (second.remembered, second.after_outside_content) == (True, False)
    problem = await served.ann.refusal(changing(CHAT, first.id, chat_id=chat.id, effect=DENY))
    assert problem.metadata == {"field": "update_mask"}
    await served.ann.ask(deleting(CHAT, first.id, chat.id))
    assert await listed(served.ann, CHAT, chat.id) == [second]


async def test_remembered_approvals_count_as_rules(served: ServedChats) -> None:
    chat = await served.ann.create()
    for number in range(100):
        await served.ann.ask(creating(CHAT, f"r{number}", chat.id))
    await remember(served, chat.id, remembered(chat.id, "1"))
    rules = await served.stored_rules.of_scope(Scope(ScopeKind.CHAT, chat.id))
    assert [rule.digest for rule in rules] == [""] * 100
