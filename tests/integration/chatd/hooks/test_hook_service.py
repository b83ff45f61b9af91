"""HookService over gRPC: administrators keep hooks, and messages are accepted as they decide."""

import json
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from chatd.content.domain.parts import HookContext, Text
from chatd.primitives.domain.ids import ChatId
from parley.api.chat.v1 import chat_service_pb2 as chats
from parley.api.chat.v1 import hook_pb2
from parley.api.chat.v1 import hook_service_pb2 as api
from support.chatd.chats.chat_people import Person, text
from support.chatd.chats.served_chats import ServedChats
from support.net.model_server import model_server, whole

URL = "https://hooks.example.com/"
ABSENT = "00000000-0000-0000-0000-00000000dead"
PROMPT, STOP = hook_pb2.HOOK_EVENT_USER_PROMPT_SUBMIT, hook_pb2.HOOK_EVENT_STOP
OPEN = hook_pb2.HOOK_FAIL_POLICY_OPEN
AUDITED = "SELECT action, object_id FROM chat.audit_outbox ORDER BY at"


def creating(request_id: str = "r", **given: Any) -> api.CreateHookRequest:
    fields: dict[str, Any] = {"name": "policy", "url": URL, "events": [PROMPT], **given}
    hook = hook_pb2.Hook(**fields)
    return api.CreateHookRequest(request_id=request_id, hook=hook)


def changing(hook_id: str, etag: str = "", **given: Any) -> api.UpdateHookRequest:
    return api.UpdateHookRequest(
        request_id="u",
        hook=hook_pb2.Hook(id=hook_id, etag=etag, **given),
        update_mask=FieldMask(paths=list(given)),
    )


async def test_the_secret_of_a_hook_is_in_the_answer_to_its_creation_and_nowhere_else(
    admin: Person,
) -> None:
    created = await admin.ask(creating(tools=["exec*"]))
    assert created.secret.startswith("whsec_")
    assert (await admin.ask(creating(tools=["exec*"]))).secret == created.secret
    hook = created.hook
    assert (hook.timeout_ms, hook.fail_policy, hook.etag) == (
        1500,
        hook_pb2.HOOK_FAIL_POLICY_CLOSED,
        "1",
    )
    changed = (await admin.ask(changing(hook.id, "1", fail_policy=OPEN, disabled=True))).hook
    assert (changed.fail_policy, changed.disabled, list(changed.tools)) == (OPEN, True, ["exec*"])
    read = await admin.ask(api.GetHookRequest(hook_id=hook.id))
    listed = await admin.ask(api.ListHooksRequest())
    assert (read.hook, list(listed.hooks)) == (changed, [changed])
    assert created.secret not in f"{read}{listed}"
    assert (await admin.refusal(changing(hook.id, "1", name="x"))).reason == "VERSION_CONFLICT"
    await admin.ask(api.DeleteHookRequest(request_id="d", hook_id=hook.id))
    gone = await admin.refusal(api.GetHookRequest(hook_id=hook.id))
    assert gone.reason == "RESOURCE_NOT_FOUND"


async def test_a_name_that_another_hook_has_is_refused(served: ServedChats, admin: Person) -> None:
    hook_id = (await admin.ask(creating())).hook.id
    other_id = (await admin.ask(creating("other", name="other"))).hook.id
    for request in (creating("third"), changing(other_id, name="policy")):
        refused = await admin.refusal(request)
        assert (refused.reason, refused.metadata["name"]) == ("NAME_TAKEN", "policy"), request

    # Hooks of earlier versions share a name.
    await served.pool.execute("UPDATE chat.hooks SET name = 'policy'")
    for each in (hook_id, other_id):
        assert (await admin.ask(changing(each, name="policy", disabled=True))).hook.disabled
    assert (await admin.ask(changing(other_id, name="other"))).hook.name == "other"


async def test_only_administrators_see_and_change_hooks(served: ServedChats, admin: Person) -> None:
    hook_id = (await admin.ask(creating())).hook.id
    requests = (
        creating("other"),
        changing(hook_id, name="x"),
        api.ListHooksRequest(),
        api.GetHookRequest(hook_id=hook_id),
        api.DeleteHookRequest(request_id="d", hook_id=hook_id),
        api.TestHookRequest(request_id="t", hook_id=hook_id),
        api.RotateHookSecretRequest(request_id="r", hook_id=hook_id),
        api.ListHookDeliveriesRequest(hook_id=hook_id),
    )
    for request in requests:
        refused = await served.ann.refusal(request)
        assert refused.status.name == "PERMISSION_DENIED", request


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "hook.name"),
        ({"url": "ftp://hooks.example.com"}, "hook.url"),
        ({"url": "http://hooks.example.com/"}, "hook.url"),
        ({"url": "https://user:password@hooks.example.com/"}, "hook.url"),
        ({"events": []}, "hook.events"),
        ({"events": [PROMPT, 99]}, "hook.events[1]"),
        ({"tools": ["execute", "a b"]}, "hook.tools[1]"),
        ({"timeout_ms": 99}, "hook.timeout_ms"),
        ({"fail_policy": 9}, "hook.fail_policy"),
    ],
)
async def test_a_hook_that_cannot_work_is_refused(
    admin: Person, given: dict[str, Any], field: str
) -> None:
    refused = await admin.refusal(creating(**given))
    assert (refused.reason, [each.field for each in refused.violations]) == (
        "INVALID_REQUEST",
        [field],
    )


async def test_all_that_is_wrong_with_a_hook_is_told_at_once(admin: Person) -> None:
    given: dict[str, Any] = {
        "name": " ",
        "events": [98, PROMPT, 99],
        "tools": ["a b", "execute", "c d"],
    }
    refused = await admin.refusal(creating(**given))
    assert [each.field for each in refused.violations] == [
        "hook.name",
        "hook.events[0]",
        "hook.events[2]",
        "hook.tools[0]",
        "hook.tools[2]",
    ]


async def test_a_test_is_delivered_and_in_the_log(admin: Person) -> None:
    async with model_server(whole(b'{"decision": "deny"}'), whole(b"?")) as consumer:
        hook = (await admin.ask(creating(url=consumer.url, disabled=True))).hook
        request = api.TestHookRequest(request_id="t", hook_id=hook.id)
        delivery = (await admin.ask(request)).delivery
        failed = (await admin.ask(request)).delivery
    assert json.loads(consumer.asked[0].body)["is_test"] is True
    assert (delivery.outcome, delivery.http_status) == (hook_pb2.HOOK_OUTCOME_DENY, 200)
    assert (failed.outcome, failed.problem[:19]) == (
        hook_pb2.HOOK_OUTCOME_FAILED,
        "its answer is no JS",
    )
    log = (await admin.ask(api.ListHookDeliveriesRequest(hook_id=hook.id))).deliveries
    assert [(each.dispatch_id, each.attempts, each.outcome) for each in log] == [
        (delivery.dispatch_id, 2, hook_pb2.HOOK_OUTCOME_FAILED)
    ]
    absent = await admin.refusal(api.ListHookDeliveriesRequest(hook_id=ABSENT))
    assert absent.reason == "RESOURCE_NOT_FOUND"


async def test_messages_are_accepted_as_a_hook_decides(served: ServedChats, admin: Person) -> None:
    chat_id = (await served.ann.create("first")).id
    answers = (
        whole(b'{"rewrite": "rewritten"}'),
        whole(b'{"decision": "deny", "reason": "No names."}'),
        whole(b"", "500 Oops"),
        whole(b'{"rewrite": "a new chat"}'),
    )
    async with model_server(*answers) as consumer:
        hook_id = (await admin.ask(creating(url=consumer.url))).hook.id
        sent = await served.ann.send(chat_id, "original", request_id="k")
        assert [part.text.text for part in sent.queued_message.content] == ["rewritten"]
        denied = await served.ann.refusal(
            chats.SendMessageRequest(request_id="l", chat_id=chat_id, content=[text("Bob")])
        )
        assert (denied.reason, denied.metadata["reason"]) == ("HOOK_DENIED", "No names.")
        failed = await served.ann.refusal(
            chats.SendMessageRequest(request_id="m", chat_id=chat_id, content=[text("x")])
        )
        assert failed.reason == "HOOK_FAILED"
        assert f"`parley hook log {hook_id}`" in failed.message
        created = await served.ann.create("original")
        assert created.title == "a new chat"
    assert json.loads(consumer.asked[0].body)["data"] == {"prompt": "original", "parts": 1}


async def test_what_a_hook_adds_to_a_message_is_stored_and_not_returned(
    served: ServedChats, admin: Person
) -> None:
    async with model_server(whole(b'{"context": "Be brief."}')) as consumer:
        await admin.ask(creating(url=consumer.url))
        chat_id = ChatId((await served.ann.create("hello")).id)
    (message,) = await served.stores.chats.history(chat_id)
    added = HookContext("user_prompt_submit", "policy", "Be brief.")
    assert message.content == (Text("hello"), added)
    shown = (await served.ann.ask(chats.ListMessagesRequest(chat_id=chat_id))).messages
    assert [part.text.text for each in shown for part in each.content] == ["hello"]


async def test_a_hook_sees_the_system_prompt_of_a_new_chat(
    served: ServedChats, admin: Person
) -> None:
    async with model_server(whole(b'{"decision": "deny", "reason": "No."}')) as consumer:
        await admin.ask(creating(url=consumer.url))
        denied = await served.ann.refusal(
            chats.CreateChatRequest(
                request_id="c", content=[text("hello")], system_prompt="Be a pirate."
            )
        )
    assert denied.reason == "HOOK_DENIED"
    assert json.loads(consumer.asked[0].body)["data"] == {
        "prompt": "hello",
        "parts": 1,
        "system_prompt": "Be a pirate.",
    }


async def test_changes_and_tests_are_in_the_audit_log(served: ServedChats, admin: Person) -> None:
    hook = (await admin.ask(creating(url="http://127.0.0.1:1099/", timeout_ms=100))).hook
    await admin.ask(changing(hook.id, events=[STOP]))
    await admin.ask(api.TestHookRequest(request_id="t", hook_id=hook.id))
    await admin.ask(api.RotateHookSecretRequest(request_id="r", hook_id=hook.id, overlap_s=60))
    await admin.ask(api.DeleteHookRequest(request_id="d", hook_id=hook.id))
    assert [tuple(row) for row in await served.pool.fetch(AUDITED)] == [
        ("hook.created", hook.id),
        ("hook.updated", hook.id),
        ("hook.tested", hook.id),
        ("hook.secret_rotated", hook.id),
        ("hook.deleted", hook.id),
    ]
