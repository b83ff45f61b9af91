"""HookService: the administration of hooks, and the log of their deliveries."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import grpc

from chatd.hooks.domain.hooks import Hook, HookEvent, sample_occurrence
from chatd.hooks.domain.ports import DeliveryLog
from chatd.hooks.engine.dispatch import HookDispatcher
from chatd.hooks.rpc.convert import (
    FIELDS,
    CheckUrl,
    delivery_to_proto,
    hook_to_proto,
    hook_with,
)
from chatd.hooks.store.hooks import PostgresHooks, new_hook_id
from chatd.models.rpc.fields import masked, version_of
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import hook_service_pb2 as api
from parley.api.chat.v1.hook_service_pb2_grpc import HookServiceServicer
from parley.settings import Secret
from parley.telemetry import audit

Context = grpc.aio.ServicerContext

DELIVERIES = 50


@dataclass(frozen=True, slots=True)
class HookPorts:
    """The dependencies of HookService.

    Attributes:
        hooks: The stored hooks.
        log: The log of deliveries.
        dispatcher: Delivers tests.
        check_url: Raises SendFailed for an address that must not be used.
        new_secret: Returns a new signing secret.
    """

    hooks: PostgresHooks
    log: DeliveryLog
    dispatcher: HookDispatcher
    check_url: CheckUrl
    new_secret: Callable[[], Secret]


class HookServicer(HookServiceServicer):
    """Serves hooks to administrators; the server's error table converts errors to problems."""

    def __init__(self, ports: HookPorts) -> None:
        self._ports = ports

    async def ListHooks(
        self, request: api.ListHooksRequest, context: Context
    ) -> api.ListHooksResponse:
        """List the hooks."""
        return api.ListHooksResponse(hooks=map(hook_to_proto, await self._ports.hooks.all()))

    async def GetHook(self, request: api.GetHookRequest, context: Context) -> api.GetHookResponse:
        """Read a hook."""
        return api.GetHookResponse(hook=hook_to_proto(await self._found(request.hook_id)))

    async def CreateHook(
        self, request: api.CreateHookRequest, context: Context
    ) -> api.CreateHookResponse:
        """Create a hook; a repeated request returns the same secret."""
        caller = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        blank = Hook(new_hook_id(caller.id, key.key), "", "", frozenset())
        hook = hook_with(blank, request.hook, frozenset(FIELDS), self._ports.check_url)
        stored, secret = await self._ports.hooks.create(
            hook, self._ports.new_secret(), key.body_hash
        )
        audit("hook.created", user_id=caller.id, hook_id=stored.id)
        return api.CreateHookResponse(hook=hook_to_proto(stored), secret=secret.reveal())

    async def UpdateHook(
        self, request: api.UpdateHookRequest, context: Context
    ) -> api.UpdateHookResponse:
        """Update a hook."""
        caller = caller_as_owner()
        changed = masked(tuple(request.update_mask.paths), FIELDS)
        stored = await self._ports.hooks.update(
            fields.uuid_of(request.hook.id, "hook.id"),
            lambda hook: hook_with(hook, request.hook, changed, self._ports.check_url),
            version_of(request.hook.etag, "hook.etag"),
        )
        audit("hook.updated", user_id=caller.id, hook_id=stored.id)
        return api.UpdateHookResponse(hook=hook_to_proto(stored))

    async def DeleteHook(
        self, request: api.DeleteHookRequest, context: Context
    ) -> api.DeleteHookResponse:
        """Delete a hook."""
        hook_id = fields.uuid_of(request.hook_id, "hook_id")
        await self._ports.hooks.delete(hook_id)
        audit("hook.deleted", user_id=caller_as_owner().id, hook_id=hook_id)
        return api.DeleteHookResponse()

    async def TestHook(
        self, request: api.TestHookRequest, context: Context
    ) -> api.TestHookResponse:
        """Send a test event; a repeated request sends the same one."""
        caller = caller_as_owner()
        hook = await self._found(request.hook_id)
        await self._ports.hooks.record_test(hook.id)
        event = next(event for event in HookEvent if event in hook.events)
        occurrence = sample_occurrence(event, f"{caller.id} {request.request_id}")
        delivery = await self._ports.dispatcher.deliver(hook, occurrence)
        audit("hook.tested", user_id=caller.id, hook_id=hook.id, outcome=delivery.outcome.value)
        return api.TestHookResponse(delivery=delivery_to_proto(delivery))

    async def RotateHookSecret(
        self, request: api.RotateHookSecretRequest, context: Context
    ) -> api.RotateHookSecretResponse:
        """Replace the secret of a hook; a repeated request returns the same one."""
        caller = caller_as_owner()
        stored, secret = await self._ports.hooks.rotate_secret(
            fields.uuid_of(request.hook_id, "hook_id"),
            self._ports.new_secret(),
            timedelta(seconds=request.overlap_s),
            fields.client_key_of(request, request.request_id).body_hash,
        )
        audit("hook.secret_rotated", user_id=caller.id, hook_id=stored.id)
        return api.RotateHookSecretResponse(hook=hook_to_proto(stored), secret=secret.reveal())

    async def ListHookDeliveries(
        self, request: api.ListHookDeliveriesRequest, context: Context
    ) -> api.ListHookDeliveriesResponse:
        """List the newest deliveries to a hook."""
        hook = await self._found(request.hook_id)
        found = await self._ports.log.deliveries(hook.id, request.page_size or DELIVERIES)
        return api.ListHookDeliveriesResponse(deliveries=map(delivery_to_proto, found))

    async def _found(self, hook_id: str) -> Hook:
        return await self._ports.hooks.find(fields.uuid_of(hook_id, "hook_id"))
