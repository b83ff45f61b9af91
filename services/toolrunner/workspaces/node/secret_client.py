"""The gRPC client for values of granted secrets, requested from chatd at each use."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

import grpc

from parley.api.workspace.v1 import node_service_pb2 as api
from parley.api.workspace.v1.node_service_pb2_grpc import NodeServiceStub
from parley.rpc import Channels, problem_of
from toolrunner.egress import NoSecrets, SecretSource, SecretUnavailable, SecretUse, SecretValue
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.workspaces.domain.placement import Placement
from toolrunner.workspaces.node.registration import Registered

CALL_S: Final = 10.0
#: When all services start together the node may be used before it is registered.
KNOWN_S: Final = 10.0
FINAL: Final = frozenset({"SECRET_NOT_GRANTED", "SECRET_NOT_FOUND"})


@dataclass(slots=True)
class DeferredSecrets:
    """A source of secrets that is set after the objects that use it were created.

    Attributes:
        source: The source.
    """

    source: SecretSource = field(default_factory=NoSecrets)

    async def use(self, use: SecretUse) -> SecretValue:
        """Call the current source.

        Raises:
            SecretUnavailable: It returns no value.
        """
        return await self.source.use(use)


class Known(Protocol):
    """The registration of this node with chatd."""

    @property
    def registered(self) -> Registered | None:
        """The last response to a registration; None before."""
        ...

    @property
    def known(self) -> asyncio.Event:
        """Set at the first registration."""
        ...


@dataclass(frozen=True, slots=True)
class GrpcSecrets:
    """Calls one replica of chatd after another.

    Attributes:
        channels: To the replicas.
        registration: The registration of this node.
        node_id: This node.
        placements: The hosted workspaces.
        new_id: Ids of requests.
        hide: Called with each value, so that it is redacted in logs.
        known_s: How long it waits for the registration.
    """

    channels: Channels
    registration: Known
    node_id: str
    placements: Mapping[WorkspaceId, Placement]
    new_id: Callable[[], str]
    hide: Callable[[str], None]
    known_s: float = KNOWN_S

    async def use(self, use: SecretUse) -> SecretValue:
        """Return a value for one use.

        Raises:
            SecretUnavailable: It is not granted, or no chatd replica answers.
        """
        registered = await self._registered()
        placement = self.placements.get(use.workspace_id)
        if registered is None or placement is None:
            raise SecretUnavailable(use.name, "this node is not known to chatd; try again")
        request = api.UseSecretRequest(
            request_id=self.new_id(),
            node_id=self.node_id,
            registration_epoch=registered.registration_epoch,
            workspace_id=use.workspace_id,
            epoch=placement.epoch,
            secret_name=use.name,
            host=use.host,
            purpose=use.purpose,
        )
        cause = "no chatd is configured"
        for channel in self.channels.all():
            try:
                answer = await NodeServiceStub(channel).UseSecret(request, timeout=CALL_S)
            except grpc.aio.AioRpcError as error:
                problem = problem_of(error)
                if problem.reason in FINAL:
                    raise SecretUnavailable(use.name, problem.message, is_final=True) from error
                cause = f"chatd does not give it ({problem.reason}); try again"
                continue
            self.hide(answer.value.decode("utf-8", "replace"))
            return SecretValue(answer.username, answer.value)
        raise SecretUnavailable(use.name, cause)

    async def _registered(self) -> Registered | None:
        """Return the registration, after a short wait if there is none yet."""
        if self.registration.registered is None and self.channels.addresses:
            try:
                async with asyncio.timeout(self.known_s):
                    await self.registration.known.wait()
            except TimeoutError:
                return None
        return self.registration.registered
