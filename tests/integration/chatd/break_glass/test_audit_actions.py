"""Each change of rules, limits, templates, secrets and shares is in the audit log, once."""

from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from chatd.workspaces.domain.templates import SCRATCH_ID
from parley.api.chat.v1 import approval_pb2, approval_service_pb2, chat_service_pb2, usage_pb2
from parley.api.chat.v1 import usage_service_pb2 as usage_api
from parley.api.workspace.v1 import secret_pb2, template_pb2
from parley.api.workspace.v1 import secret_service_pb2 as secrets_api
from parley.api.workspace.v1 import workspace_service_pb2 as workspaces_api
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, EVE_ID, Person
from support.chatd.chats.served_chats import ServedChats

INSTALLATION = approval_pb2.APPROVAL_SCOPE_INSTALLATION
ASK = approval_pb2.APPROVAL_EFFECT_ASK


async def recorded(served: ServedChats) -> list[tuple[str, str | None, str | None, str]]:
    """Return the action, the actor, the subject and the object of each event."""
    rows = await served.pool.fetch("""
        SELECT action, actor_user_id::text, subject_user_id::text, object_id
        FROM chat.audit_outbox ORDER BY seq
    """)
    return [(row[0], row[1], row[2], row[3]) for row in rows]


async def test_approval_rules_of_the_installation_are_in_the_log(
    served: ServedChats, admin: Person
) -> None:
    api = approval_service_pb2
    rule = approval_pb2.ApprovalRule(effect=ASK, tool="execute")
    made = (
        await admin.ask(
            api.CreateApprovalRuleRequest(request_id="a", scope=INSTALLATION, rule=rule)
        )
    ).rule
    changed = approval_pb2.ApprovalRule(id=made.id, reason="why")
    await admin.ask(
        api.UpdateApprovalRuleRequest(
            request_id="b",
            scope=INSTALLATION,
            rule=changed,
            update_mask=FieldMask(paths=["reason"]),
        )
    )
    await admin.ask(
        api.DeleteApprovalRuleRequest(request_id="c", scope=INSTALLATION, rule_id=made.id)
    )

    assert await recorded(served) == [
        ("approval_rule.created", BOB_ID, None, made.id),
        ("approval_rule.updated", BOB_ID, None, made.id),
        ("approval_rule.deleted", BOB_ID, None, made.id),
    ]


async def test_spend_limits_are_in_the_log(served: ServedChats, admin: Person) -> None:
    for request_id, micros in (("a", 5), ("b", 0)):
        limit = usage_pb2.SpendLimit(
            limit_micros=micros, period=usage_pb2.LIMIT_PERIOD_DAY, user_id=EVE_ID
        )
        await admin.ask(usage_api.SetSpendLimitRequest(request_id=request_id, limit=limit))

    assert [each[:3] for each in await recorded(served)] == [
        ("spend_limit.set", BOB_ID, EVE_ID)
    ] * 2


async def test_templates_are_in_the_log(served: ServedChats, admin: Person) -> None:
    api = workspaces_api
    template = template_pb2.Template(name="t", kind=template_pb2.WORKSPACE_KIND_SCRATCH)
    template.scratch.SetInParent()
    made = (await admin.ask(api.CreateTemplateRequest(request_id="a", template=template))).template
    changed = template_pb2.Template(template_id=made.template_id, description="d")
    mask = FieldMask(paths=["description"])
    await admin.ask(api.UpdateTemplateRequest(request_id="b", template=changed, update_mask=mask))
    await admin.ask(api.DeleteTemplateRequest(request_id="c", template_id=made.template_id))

    assert await recorded(served) == [
        ("template.created", BOB_ID, None, made.template_id),
        ("template.updated", BOB_ID, None, made.template_id),
        ("template.deleted", BOB_ID, None, made.template_id),
    ]


async def put(person: Person, name: str) -> Any:
    secret = secret_pb2.Secret(
        name=name, hosts=["github.com"], delivery=secret_pb2.SECRET_DELIVERY_GIT
    )
    request = secrets_api.PutSecretRequest(
        request_id=person.fresh(), secret=secret, value=b"the value that is not shown"
    )
    return (await person.ask(request)).secret


async def test_secrets_and_their_grants_are_in_the_log_without_their_names(
    served: ServedChats,
) -> None:
    ann = served.ann
    secret = await put(ann, "the-name-of-it")
    created = workspaces_api.CreateWorkspaceRequest(
        request_id=ann.fresh(), template_id=SCRATCH_ID, secret_names=["the-name-of-it"]
    )
    workspace_id = (await ann.ask(created)).workspace.workspace_id
    for names in ([], ["the-name-of-it"]):
        await ann.ask(
            secrets_api.SetGrantsRequest(
                request_id=ann.fresh(), workspace_id=workspace_id, secret_names=names
            )
        )
    await ann.ask(
        secrets_api.DeleteSecretRequest(request_id=ann.fresh(), secret_id=secret.secret_id)
    )
    details = await served.pool.fetch("SELECT details::text FROM chat.audit_outbox ORDER BY seq")
    granted = ("workspace.secrets_granted", ANN_ID, ANN_ID, workspace_id)

    assert await recorded(served) == [
        ("secret.put", ANN_ID, None, secret.secret_id),
        granted,
        granted,
        granted,
        ("secret.deleted", ANN_ID, None, secret.secret_id),
    ]
    assert [row[0] for row in details[1:4]] == [f'{{"secrets": "{count}"}}' for count in (1, 0, 1)]
    assert "the-name-of-it" not in str(details)


async def test_shares_are_in_the_log_with_whom_they_concern(served: ServedChats) -> None:
    chat = await served.ann.create()
    share = chat_service_pb2.Share(user_id=EVE_ID)
    for request_id, shares in (("a", (share,)), ("b", ())):
        await served.ann.ask(
            chat_service_pb2.SetSharesRequest(request_id=request_id, chat_id=chat.id, shares=shares)
        )

    assert await recorded(served) == [
        ("chat.shared", ANN_ID, EVE_ID, chat.id),
        ("chat.unshared", ANN_ID, EVE_ID, chat.id),
    ]
