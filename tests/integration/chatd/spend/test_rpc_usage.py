"""UsageService: sums, who may see them, limits, and what limits refuse."""

from datetime import UTC, datetime
from typing import Any

import grpc
import pytest

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.spend.engine.enforcement import LimitedSpending
from chatd.spend.store.ledger import PostgresLedger
from chatd.spend.store.limits import PostgresLimits
from parley.api.chat.v1 import chat_service_pb2, usage_pb2
from parley.api.chat.v1 import usage_service_pb2 as api
from parley.clock import FakeClock
from parley.identity import Role as UserRole
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, EVE_ID, EVES_GROUP, Person, text
from support.chatd.chats.served_chats import ServedChats
from support.chatd.users.fixed_users import KnownGroups

PRICED = ModelUse("m1", 10, 20, 5, 30, 40, cost_micros=100, model_runtime_ms=7, model_name="large")
UNPRICED = ModelUse("m2", 1, 2)
FAR = datetime(2100, 1, 1, tzinfo=UTC)


async def bill(
    served: ServedChats,
    chat_id: str,
    owner_id: OwnerId,
    use: ModelUse = PRICED,
    outcome: CallOutcome = CallOutcome.DONE,
    purpose: CallPurpose = CallPurpose.TURN,
) -> None:
    """Enter one more call."""
    count = await served.pool.fetchval("SELECT count(*) FROM chat.usage")
    entry = LedgerEntry(ChatId(chat_id), count, 1, Bill(purpose, outcome, use))
    await PostgresLedger(served.pool).enter(entry, owner_id)


def totals(**more: int) -> usage_pb2.UsageTotals:
    return usage_pb2.UsageTotals(**more)


ONE = totals(
    cost_micros=100,
    priced_calls=1,
    input_tokens=10,
    output_tokens=20,
    cache_read_tokens=30,
    cache_write_tokens=40,
    model_runtime_ms=7,
)
BOTH = totals(
    cost_micros=100,
    priced_calls=1,
    unpriced_calls=1,
    input_tokens=11,
    output_tokens=22,
    cache_read_tokens=30,
    cache_write_tokens=40,
    model_runtime_ms=7,
)


def until_far(request: Any) -> Any:
    """Let the span of a request end after the database's clock, which nobody holds."""
    request.end.FromDatetime(FAR)
    return request


def limit_for(micros: int, **whom: Any) -> api.SetSpendLimitRequest:
    period = usage_pb2.LIMIT_PERIOD_MONTH
    limit = usage_pb2.SpendLimit(limit_micros=micros, period=period, **whom)
    return api.SetSpendLimitRequest(request_id="r", limit=limit)


async def test_root_and_child_tell_what_their_tree_cost(served: ServedChats) -> None:
    chat = await served.ann.create()
    child_id = await served.add_child(chat.id)
    await bill(served, chat.id, ANN_ID)
    await bill(served, child_id, ANN_ID, UNPRICED, CallOutcome.FAILED)
    for chat_id, own in ((chat.id, 100), (child_id, None)):
        answer = await served.ann.ask(api.GetChatUsageRequest(chat_id=chat_id))
        assert answer == api.GetChatUsageResponse(
            root_chat_id=chat.id, totals=BOTH, own_cost_micros=own
        )


async def test_each_chat_of_a_tree_tells_what_it_cost_alone(served: ServedChats) -> None:
    chat = await served.ann.create()
    child_id = await served.add_child(chat.id)
    for chat_id in (chat.id, child_id, child_id):
        await bill(served, chat_id, ANN_ID)
    for chat_id, own in ((chat.id, 100), (child_id, 200)):
        answer = await served.ann.ask(api.GetChatUsageRequest(chat_id=chat_id))
        assert (answer.totals.cost_micros, answer.own_cost_micros) == (300, own)


async def test_calls_of_every_purpose_are_in_the_cost_of_their_chat(served: ServedChats) -> None:
    chat = await served.ann.create()
    for purpose in CallPurpose:
        await bill(served, chat.id, ANN_ID, purpose=purpose)
    answer = await served.ann.ask(api.GetChatUsageRequest(chat_id=chat.id))
    cost_micros = 100 * len(CallPurpose)
    assert (answer.totals.cost_micros, answer.own_cost_micros) == (cost_micros, cost_micros)


async def test_a_chat_that_cost_nothing_has_empty_sums(served: ServedChats) -> None:
    chat = await served.ann.create()
    answer = await served.ann.ask(api.GetChatUsageRequest(chat_id=chat.id))
    assert answer.totals == totals()


async def test_only_the_owner_and_readers_of_all_see_what_a_chat_cost(served: ServedChats) -> None:
    chat = await served.ann.create()
    request = api.GetChatUsageRequest(chat_id=chat.id)
    refused = await served.bob.refusal(request)
    assert (refused.status, refused.reason) == (grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND")
    for role in (UserRole.OWNER, UserRole.ADMIN, UserRole.AUDITOR):
        served.bob.role = role
        assert (await served.bob.ask(request)).root_chat_id == chat.id


async def test_a_users_sums_are_told_by_model_and_by_tree(served: ServedChats) -> None:
    chat, other = await served.ann.create("first words"), await served.ann.create("others")
    await bill(served, chat.id, ANN_ID)
    await bill(served, other.id, ANN_ID, UNPRICED)
    gone = "00000000-0000-0000-0000-0000000000cc"
    await bill(served, gone, ANN_ID, UNPRICED)
    await bill(served, chat.id, BOB_ID)
    answer = await served.ann.ask(until_far(api.GetUserUsageRequest()))
    assert (answer.totals.cost_micros, answer.totals.unpriced_calls) == (100, 2)
    rows = answer.by_model
    assert [(row.id, row.totals.unpriced_calls) for row in rows] == [("m1", 0), ("m2", 2)]
    # A model of the catalogue has its names there, others those of the ledger.
    assert [(row.name, row.provider_display_name) for row in rows] == [("Large", "Acme"), ("", "")]
    assert [(row.id, row.name) for row in answer.by_chat] == [
        (chat.id, "first words"),
        *sorted([(other.id, "others"), (gone, "")]),
    ]
    assert answer.by_chat[0].totals == ONE


async def test_an_administrator_sees_what_chats_of_others_cost_and_not_their_titles(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("first words")
    await bill(served, chat.id, ANN_ID)
    served.bob.role = UserRole.ADMIN
    answer = await served.bob.ask(until_far(api.GetUserUsageRequest(user_id=ANN_ID)))
    assert [(row.id, row.name) for row in answer.by_chat] == [(chat.id, "")]


async def test_a_span_holds_its_start_and_not_its_end(served: ServedChats) -> None:
    chat = await served.ann.create()
    await bill(served, chat.id, ANN_ID)
    at = datetime(2026, 5, 1, 12, 0, 0, 250, tzinfo=UTC)
    await served.pool.execute("UPDATE chat.usage SET created_at = $1", at)
    for start, end, count in ((at, FAR, 1), (datetime(2026, 1, 1, tzinfo=UTC), at, 0)):
        request = api.GetUserUsageRequest()
        request.start.FromDatetime(start)
        request.end.FromDatetime(end)
        assert (await served.ann.ask(request)).totals.priced_calls == count


async def test_a_span_that_ends_before_it_begins_is_refused(served: ServedChats) -> None:
    request = api.GetUserUsageRequest()
    request.start.FromDatetime(FAR)
    refused = await served.ann.refusal(request)
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", "end")


async def test_what_others_used_is_for_administrators_and_auditors(served: ServedChats) -> None:
    chat = await served.ann.create()
    await bill(served, chat.id, ANN_ID)
    request = until_far(api.GetUserUsageRequest(user_id=ANN_ID))
    refused = await served.bob.refusal(request)
    assert (refused.status, refused.reason) == (grpc.StatusCode.PERMISSION_DENIED, "FORBIDDEN")
    served.bob.role = UserRole.AUDITOR
    assert (await served.bob.ask(request)).totals == ONE


async def test_every_user_is_listed_page_by_page(served: ServedChats, admin: Person) -> None:
    chat = await served.ann.create()
    for owner_id, calls in ((ANN_ID, 2), (BOB_ID, 3), (EVE_ID, 2)):
        for _ in range(calls):
            await bill(served, chat.id, owner_id)
    listed: list[tuple[str, int]] = []
    request = until_far(api.ListUsageRequest(page_size=1))
    while True:
        page = await admin.ask(request)
        listed += [(row.id, row.totals.cost_micros) for row in page.users]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert listed == [(BOB_ID, 300), (ANN_ID, 200), (EVE_ID, 200)]


@pytest.mark.parametrize("token", ["x", "W10", "!", "WzEsMl0"])
async def test_a_token_of_nobodys_is_refused(admin: Person, token: str) -> None:
    refused = await admin.refusal(api.ListUsageRequest(page_token=token))
    assert refused.reason == "INVALID_REQUEST"


async def test_a_member_may_neither_list_nor_limit(served: ServedChats) -> None:
    for request in (
        api.ListUsageRequest(),
        api.ListSpendLimitsRequest(),
        limit_for(1, everyone=True),
    ):
        refused = await served.ann.refusal(request)
        assert refused.status is grpc.StatusCode.PERMISSION_DENIED


async def test_limits_are_set_listed_changed_and_taken_away(
    served: ServedChats, admin: Person
) -> None:
    await admin.ask(limit_for(5, everyone=True))
    await admin.ask(limit_for(6, group_id=EVES_GROUP))
    await admin.ask(limit_for(7, user_id=ANN_ID))
    await admin.ask(limit_for(8, user_id=ANN_ID))
    found: list[int] = []
    request = api.ListSpendLimitsRequest(page_size=1)
    while True:
        page = await admin.ask(request)
        found += [limit.limit_micros for limit in page.limits]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert found == [5, 6, 8]
    await admin.ask(limit_for(0, group_id=EVES_GROUP))
    left = await admin.ask(api.ListSpendLimitsRequest())
    assert [limit.WhichOneof("subject") for limit in left.limits] == ["everyone", "user_id"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (limit_for(1), "limit.subject"),
        (limit_for(1, everyone=False), "limit.subject"),
        (limit_for(-1, everyone=True), "limit.limit_micros"),
        (limit_for(10**13 + 1, everyone=True), "limit.limit_micros"),
        (limit_for(1, user_id="ann"), "limit.user_id"),
        (
            api.SetSpendLimitRequest(
                request_id="r", limit=usage_pb2.SpendLimit(everyone=True, limit_micros=1)
            ),
            "limit.period",
        ),
    ],
)
async def test_a_limit_that_cannot_be_is_refused(
    admin: Person, request_: api.SetSpendLimitRequest, field: str
) -> None:
    refused = await admin.refusal(request_)
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", field)


async def test_all_that_is_wrong_with_a_limit_is_told_at_once(admin: Person) -> None:
    limit = usage_pb2.SpendLimit(limit_micros=1)
    refused = await admin.refusal(api.SetSpendLimitRequest(request_id="r", limit=limit))
    assert [(each.field, each.description) for each in refused.violations] == [
        ("limit.subject", "is missing; give user_id, group_id or everyone"),
        ("limit.period", "is not known; there are day, week, month"),
    ]


async def test_users_are_told_where_they_stand(served: ServedChats, admin: Person) -> None:
    chat = await served.ann.create()
    await bill(served, chat.id, ANN_ID)
    await admin.ask(limit_for(500, everyone=True))
    status = (await served.ann.ask(api.GetSpendStatusRequest())).status
    assert (status.spent_micros, status.limit.limit_micros) == (100, 500)
    assert status.resets_at.ToDatetime(tzinfo=UTC) == datetime(2026, 2, 1, tzinfo=UTC)
    await admin.ask(limit_for(0, everyone=True))
    assert not (await served.ann.ask(api.GetSpendStatusRequest())).status.HasField("limit")


async def test_a_user_at_their_limit_can_start_nothing_new(
    served: ServedChats, admin: Person
) -> None:
    chat = await served.ann.create(request_id="before")
    await served.finish(chat.id)
    await served.ann.send(chat.id, request_id="sent before")
    await served.finish(chat.id)
    await bill(served, chat.id, ANN_ID)
    await admin.ask(limit_for(100, user_id=ANN_ID))
    refused = [
        await served.ann.refusal(request)
        for request in (
            chat_service_pb2.CreateChatRequest(request_id="new", content=[text("hi")]),
            chat_service_pb2.SendMessageRequest(
                request_id="more", chat_id=chat.id, content=[text("hi")]
            ),
            chat_service_pb2.EditMessageRequest(
                request_id="edit", chat_id=chat.id, message_id=1, content=[text("hi")]
            ),
            chat_service_pb2.RequestCompactionRequest(request_id="compact", chat_id=chat.id),
        )
    ]
    rest_of_month = datetime(2026, 2, 1, tzinfo=UTC) - FakeClock().now()
    assert {each.retry_after_s for each in refused} == {rest_of_month.total_seconds()}
    assert [(each.reason, each.metadata) for each in refused] == [
        (
            "USAGE_LIMIT",
            {
                "spent_micros": "100",
                "limit_micros": "100",
                "resets_at": "2026-02-01T00:00:00Z",
            },
        )
    ] * 4
    assert len(await served.pool.fetch("SELECT 1 FROM chat.chats")) == 1
    assert (await served.bob.create()).id
    assert (await served.ann.create(request_id="before")).id == chat.id
    assert (await served.ann.send(chat.id, request_id="sent before")).replayed


async def test_a_queued_message_can_be_promoted_although_the_limit_was_reached(
    served: ServedChats, admin: Person
) -> None:
    chat = await served.ann.create()
    waiting = (await served.ann.send(chat.id)).queued_message
    await bill(served, chat.id, ANN_ID)
    await admin.ask(limit_for(1, everyone=True))
    await served.ann.ask(
        chat_service_pb2.PromoteQueuedMessageRequest(
            request_id="p", chat_id=chat.id, queued_message_id=waiting.id
        )
    )
    assert (await served.state(chat.id)).status is Status.INTERRUPTING


async def test_a_group_is_remembered_with_the_chat_that_it_admitted(
    served: ServedChats, admin: Person
) -> None:
    first = await served.eve.create()
    await served.finish(first.id)
    await served.eve.send(first.id)
    assert (await groups_of(served, first.id), served.groups.asked) == ([], 0)
    await admin.ask(limit_for(500, group_id=EVES_GROUP))
    second = await served.eve.create()
    assert await groups_of(served, second.id) == [EVES_GROUP]
    await served.finish(first.id)
    await served.eve.send(first.id)
    assert await groups_of(served, first.id) == [EVES_GROUP]
    await bill(served, first.id, EVE_ID)
    await admin.ask(limit_for(1, everyone=True))
    nobody_tells = KnownGroups()
    nobody_tells.is_available = False
    spending = LimitedSpending(PostgresLimits(served.pool), nobody_tells, FakeClock())
    owner = Owner(EVE_ID, "member")
    assert await spending.refusal(ChatId(first.id), owner) is None
    await served.pool.execute("UPDATE chat.chats SET owner_group_ids = '{}'")
    error = await spending.refusal(ChatId(first.id), owner)
    assert error is not None
    assert error.kind is ErrorKind.USAGE_LIMIT


async def groups_of(served: ServedChats, chat_id: str) -> list[str]:
    found = await served.pool.fetchval(
        "SELECT owner_group_ids FROM chat.chats WHERE id = $1", chat_id
    )
    return [str(each) for each in found]


async def test_a_groups_limit_refuses_its_members_and_nobody_else(
    served: ServedChats, admin: Person
) -> None:
    eves, anns = await served.eve.create(), await served.ann.create()
    await bill(served, eves.id, EVE_ID)
    await bill(served, anns.id, ANN_ID)
    await admin.ask(limit_for(100, group_id=EVES_GROUP))

    refused = await served.eve.refusal(sending(eves.id))
    status = (await served.eve.ask(api.GetSpendStatusRequest())).status
    await served.ann.send(anns.id)
    served.groups.groups.clear()
    await served.eve.send(eves.id)

    assert (refused.status, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "USAGE_LIMIT")
    assert (status.spent_micros, status.limit.group_id) == (100, EVES_GROUP)


async def test_nobody_spends_while_their_limit_depends_on_groups_that_nobody_tells(
    served: ServedChats, admin: Person
) -> None:
    chat = await served.eve.create(request_id="before")
    served.groups.is_available = False
    await served.eve.send(chat.id, request_id="sent before")
    assert (await served.eve.ask(api.GetSpendStatusRequest())).status.spent_micros == 0
    await admin.ask(limit_for(100, group_id=EVES_GROUP))

    refused = [
        await served.eve.refusal(sending(chat.id)),
        await served.eve.refusal(
            chat_service_pb2.CreateChatRequest(request_id="new", content=[text("hello")])
        ),
        await served.eve.refusal(api.GetSpendStatusRequest()),
    ]
    again = await served.eve.send(chat.id, request_id="sent before")
    same = await served.eve.create(request_id="before")
    served.groups.is_available = True
    await served.eve.send(chat.id)

    assert [(each.status, each.reason) for each in refused] == [
        (grpc.StatusCode.UNAVAILABLE, "GROUPS_UNAVAILABLE")
    ] * 3
    # What was admitted before is not refused because of it.
    assert (again.replayed, same.id) == (True, chat.id)


def sending(chat_id: str) -> chat_service_pb2.SendMessageRequest:
    return chat_service_pb2.SendMessageRequest(
        request_id="another", chat_id=chat_id, content=[text("more")]
    )
