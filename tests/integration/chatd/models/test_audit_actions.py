"""Each change of providers, keys and models is in the audit log, once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from chatd.models.domain.catalogue import DEMO
from parley.api.chat.v1 import model_pb2
from parley.api.chat.v1 import model_service_pb2 as api
from parley.postgres import Pool
from support.chatd.models.served_models import ADA_ID, ServedModels, served_models


@pytest.fixture
async def served(pool: Pool, tmp_path: Path) -> AsyncIterator[ServedModels]:
    async with served_models(pool, tmp_path, given=DEMO) as running:
        yield running


async def test_what_administrators_change_of_models_is_in_the_log(served: ServedModels) -> None:
    ada = served.ada
    provider = await ada.provider()
    changed = model_pb2.Provider(id=provider.id, display_name="Ours")
    mask = FieldMask(paths=["display_name"])
    await ada.ask(api.UpdateProviderRequest(provider=changed, update_mask=mask))
    added = api.AddProviderKeyRequest(provider_id=provider.id, key="sk-very-secret-key-0123456789")
    key = (await ada.ask(added)).key
    added = api.AddProviderKeyRequest(provider_id=provider.id, key="sk-very-secret-key-9876543210")
    other_key = (await ada.ask(added)).key
    order = api.SetProviderKeyOrderRequest(provider_id=provider.id, key_ids=[other_key.id, key.id])
    await ada.ask(order)
    model = await ada.model(provider.id)
    renamed = model_pb2.Model(id=model.id, display_name="The big one")
    await ada.ask(api.UpdateModelRequest(model=renamed, update_mask=mask))
    title = model_pb2.ModelOverride(purpose=model_pb2.MODEL_PURPOSE_TITLE, model_id=model.id)
    await ada.ask(api.SetModelOverrideRequest(override=title))
    title.model_id = ""
    await ada.ask(api.SetModelOverrideRequest(override=title))
    await ada.ask(api.DeleteProviderKeyRequest(key_id=key.id))
    await ada.ask(api.DeleteModelRequest(model_id=model.id))
    await ada.ask(api.DeleteProviderRequest(provider_id=provider.id))
    rows = await served.pool.fetch(
        "SELECT action, actor_user_id::text, object_id, details::text FROM chat.audit_outbox"
        " ORDER BY seq"
    )

    assert [(row["action"], row["object_id"]) for row in rows] == [
        ("provider.created", provider.id),
        ("provider.updated", provider.id),
        ("provider_key.added", key.id),
        ("provider_key.added", other_key.id),
        ("provider.keys_ordered", provider.id),
        ("model.created", model.id),
        ("model.updated", model.id),
        ("model_override.set", "title"),
        ("model_override.set", "title"),
        ("provider_key.deleted", key.id),
        ("model.deleted", model.id),
        ("provider.deleted", provider.id),
    ]
    assert {row["actor_user_id"] for row in rows} == {ADA_ID}
    assert "very-secret" not in str(rows)
