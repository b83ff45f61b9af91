"""The order in which the keys of a provider are tried, changed over gRPC."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import grpc
import pytest

from chatd.models.domain.catalogue import DEMO
from parley.api.chat.v1 import model_pb2
from parley.api.chat.v1 import model_service_pb2 as api
from parley.postgres import Pool
from support.chatd.models.served_models import ServedModels, served_models

KEY = "sk-very-secret-key-0123456789"
NEVER_STORED = "00000000-0000-0000-0000-0000000000ff"


@pytest.fixture
async def served(pool: Pool, tmp_path: Path) -> AsyncIterator[ServedModels]:
    async with served_models(pool, tmp_path, given=DEMO) as running:
        yield running


async def add_keys(served: ServedModels, provider_id: str, count: int) -> list[str]:
    added = [
        await served.ada.ask(api.AddProviderKeyRequest(provider_id=provider_id, key=f"{KEY}{each}"))
        for each in range(count)
    ]
    return [each.key.id for each in added]


def order(
    provider_id: str, key_ids: Sequence[str], etag: str = ""
) -> api.SetProviderKeyOrderRequest:
    return api.SetProviderKeyOrderRequest(provider_id=provider_id, key_ids=key_ids, etag=etag)


async def read(served: ServedModels, provider_id: str) -> model_pb2.Provider:
    request = api.GetProviderRequest(provider_id=provider_id)
    provider: model_pb2.Provider = (await served.ada.ask(request)).provider
    return provider


def tried(provider: model_pb2.Provider) -> list[tuple[int, str]]:
    return [(key.order, key.id) for key in provider.keys]


async def ordered_times(served: ServedModels) -> int:
    count: int = await served.pool.fetchval(
        "SELECT count(*) FROM chat.audit_outbox WHERE action = 'provider.keys_ordered'"
    )
    return count


async def test_keys_are_tried_in_the_order_that_an_administrator_gives_them(
    served: ServedModels,
) -> None:
    provider = await served.ada.provider()
    first, second, third = await add_keys(served, provider.id, 3)
    await served.ada.ask(api.DeleteProviderKeyRequest(key_id=first))
    (fourth,) = await add_keys(served, provider.id, 1)

    changed = (await served.ada.ask(order(provider.id, [fourth, third, second], "1"))).provider

    assert tried(changed) == [(1, fourth), (2, third), (3, second)]
    assert changed.etag == "2"
    assert await read(served, provider.id) == changed
    checked = await served.ada.ask(api.CheckProviderRequest(provider_id=provider.id))
    assert [each.key_id for each in checked.keys] == [fourth, third, second]
    (fifth,) = await add_keys(served, provider.id, 1)
    assert tried(await read(served, provider.id))[-1] == (4, fifth)


async def test_an_order_that_holds_already_changes_nothing_also_when_it_is_sent_again(
    served: ServedModels,
) -> None:
    provider = await served.ada.provider()
    first, second = await add_keys(served, provider.id, 2)
    assert (await served.ada.ask(order(provider.id, [first, second]))).provider.etag == "1"
    assert await ordered_times(served) == 0

    request = order(provider.id, [second, first], "1")
    request.request_id = "the-same"
    answers = [(await served.ada.ask(request)).provider for _ in range(2)]

    assert [each.etag for each in answers] == ["2", "2"]
    assert answers[0] == answers[1]
    assert await ordered_times(served) == 1


async def test_an_order_over_an_older_version_of_the_provider_is_refused(
    served: ServedModels,
) -> None:
    provider = await served.ada.provider()
    first, second, third = await add_keys(served, provider.id, 3)
    await served.ada.ask(order(provider.id, [second, first, third], "1"))

    refused = await served.ada.refusal(order(provider.id, [third, second, first], "1"))

    assert (refused.reason, dict(refused.metadata)) == ("VERSION_CONFLICT", {"etag": "2"})
    assert tried(await read(served, provider.id)) == [(1, second), (2, first), (3, third)]


async def test_an_order_that_does_not_name_each_key_once_is_refused_with_what_does_not_fit(
    served: ServedModels,
) -> None:
    provider = await served.ada.provider(user_keys_allowed=True)
    other = await served.ada.provider("other")
    first, second = await add_keys(served, provider.id, 2)
    (foreign,) = await add_keys(served, other.id, 1)
    own = api.AddProviderKeyRequest(provider_id=provider.id, key=KEY, personal=True)
    of_ann = (await served.ann.ask(own)).key.id
    not_there = "is no key of the installation at this provider"
    cases: list[tuple[list[str], list[tuple[str, str]]]] = [
        ([first, second, NEVER_STORED], [("key_ids[2]", not_there)]),
        ([first, "x", second], [("key_ids[1]", not_there)]),
        ([foreign, second, first], [("key_ids[0]", not_there)]),
        ([second, first, of_ann], [("key_ids[2]", not_there)]),
        ([second], [("key_ids", f"leaves out {first}")]),
        ([], [("key_ids", f"leaves out {first}, {second}")]),
        (
            [second, second],
            [("key_ids[1]", "is named before already"), ("key_ids", f"leaves out {first}")],
        ),
    ]
    for key_ids, problems in cases:
        refused = await served.ada.refusal(order(provider.id, key_ids))
        assert (refused.status, refused.reason, dict(refused.metadata)) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            "KEY_ORDER_MISMATCH",
            {"provider_id": provider.id},
        )
        assert [(each.field, each.description) for each in refused.violations] == problems
    assert tried(await read(served, provider.id)) == [(1, first), (2, second)]
    assert await ordered_times(served) == 0


async def test_only_administrators_order_the_keys_of_providers_that_are_stored(
    served: ServedModels,
) -> None:
    provider = await served.ada.provider()
    key_ids = await add_keys(served, provider.id, 2)
    refusals = [
        await served.ann.refusal(order(provider.id, key_ids)),
        await served.ada.refusal(order(NEVER_STORED, key_ids)),
        await served.ada.refusal(order("scripted", key_ids)),
    ]
    assert [each.reason for each in refusals] == [
        "ROLE_NOT_ALLOWED",
        "RESOURCE_NOT_FOUND",
        "INVALID_REQUEST",
    ]
