"""Registration of this node with chatd: registration, heartbeats, and execution of orders.

Theory: changes are sent with the next heartbeat, and sent again until one was answered, so that
neither side has to track lost messages. The orders of chatd for workspaces come with the responses
and are executed concurrently with the heartbeats, which must not wait for them. The workspace of a
failed order is reported again with the next heartbeat, so that the order is sent again; and
unchanged workspaces are reported once a minute, because the orders for them may have changed.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Final, Protocol

from parley.clock import Clock
from parley.tasks import is_set_within
from parley.telemetry import OutageLog
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import StalePlacement, ToolrunnerError
from toolrunner.workspaces.domain.placement import Hosted, HostState

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
#: When all services start together chatd is available soon, and until then no secret can be used.
FIRST_RETRY_S: Final = 0.25
REGISTER_MAX_S: Final = 4.0
RETRY_MAX_S: Final = 30.0
#: Changes within this time are sent together.
GATHER_S: Final = 0.25
LEAVE_S: Final = 5.0
#: Every so many heartbeats all workspaces are reported.
ALL_EVERY_BEATS: Final = 6


class Instruction(StrEnum):
    """The action of an order; names are those of the proto."""

    STOP = "stop"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Order:
    """An order of chatd for a workspace of this node."""

    workspace_id: WorkspaceId
    epoch: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Registered:
    """The response to a registration."""

    registration_epoch: int
    heartbeat_s: float
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """The response to a heartbeat."""

    is_draining: bool = False
    orders: tuple[Order, ...] = ()


class RegistryUnreachable(Exception):
    """No chatd replica answers."""


class RegistrationStale(Exception):
    """The node has to register again."""


class Registry(Protocol):
    """The registry of nodes in chatd."""

    async def register(self, request_id: str, hosted: tuple[Hosted, ...]) -> Registered:
        """Register the node with all its workspaces.

        Raises:
            RegistryUnreachable: No chatd replica answers.
        """
        ...

    async def heartbeat(
        self, request_id: str, registration_epoch: int, changed: tuple[Hosted, ...]
    ) -> HeartbeatAnswer:
        """Send a heartbeat with the changed workspaces.

        Raises:
            RegistryUnreachable: No chatd replica answers.
            RegistrationStale: The node has to register again.
        """
        ...

    async def leave(self, request_id: str, registration_epoch: int) -> None:
        """Deregister the node.

        Raises:
            RegistryUnreachable: No chatd replica answers.
            RegistrationStale: The node is not registered any more.
        """
        ...


class OrderTarget(Protocol):
    """Executes orders: stops and removes workspaces.

    Attributes:
        is_draining: Whether no new workspace is accepted.
    """

    is_draining: bool

    @property
    def changed(self) -> asyncio.Event:
        """Set when a workspace changed."""
        ...

    async def stop(self, request: None, workspace_id: WorkspaceId, epoch: int) -> bytes:
        """End all processes of a workspace and keep its files."""
        ...

    async def remove(self, request: None, workspace_id: WorkspaceId, epoch: int) -> bytes:
        """Remove a workspace with its files."""
        ...


@dataclass
class Registration:
    """Keeps this node registered as long as it runs.

    Attributes:
        registry: The registry.
        host: Executes the orders.
        hosted: Returns all hosted workspaces.
        clock: Time between heartbeats.
        rng: Returns a random number below 1 as jitter, so that nodes do not all retry at once.
        new_id: Ids of requests.
        registered: The last response to a registration; None before.
    """

    registry: Registry
    host: OrderTarget
    hosted: Callable[[], tuple[Hosted, ...]]
    clock: Clock
    rng: Callable[[], float]
    new_id: Callable[[], str]
    registered: Registered | None = None
    known: asyncio.Event = field(default_factory=asyncio.Event)
    _reported: dict[WorkspaceId, Hosted] = field(default_factory=dict)
    _obeying: set[Order] = field(default_factory=set)
    _undone: set[WorkspaceId] = field(default_factory=set)

    async def run(self) -> None:
        """Register and send heartbeats; runs until cancelled."""
        # After a failure no order is being executed.
        self._obeying.clear()
        outages = OutageLog(logger, self.clock, "no chatd accepts this node")
        async with asyncio.TaskGroup() as tasks:
            delay_s = FIRST_RETRY_S
            while True:
                try:
                    await self._register(tasks)
                    outages.succeeded()
                    delay_s = FIRST_RETRY_S
                    await self._beat(tasks)
                except RegistrationStale:
                    logger.info("chatd does not know this node any more; it registers again")
                except RegistryUnreachable as error:
                    outages.failed(error)
                    await self.clock.sleep(delay_s * (1 + self.rng() / 4))
                    delay_s = min(REGISTER_MAX_S, delay_s * 2)

    async def leave(self) -> None:
        """Deregister this node, if chatd answers in time."""
        if self.registered is None:
            return
        try:
            async with asyncio.timeout(LEAVE_S):
                await self.registry.leave(self.new_id(), self.registered.registration_epoch)
        except (RegistryUnreachable, RegistrationStale, TimeoutError) as error:
            logger.warning("chatd could not be notified that this node stops: %s", error)

    async def _register(self, tasks: asyncio.TaskGroup) -> None:
        self.host.changed.clear()
        hosted = self.hosted()
        self.registered = await self.registry.register(self.new_id(), hosted)
        self.known.set()
        self._reported = {each.workspace_id: each for each in hosted}
        self._obey(tasks, self.registered.orders)

    async def _beat(self, tasks: asyncio.TaskGroup) -> None:
        assert self.registered is not None, "it was just registered"
        for beat in count(1):
            await self._until_due(self.registered.heartbeat_s)
            self.host.changed.clear()
            hosted = {each.workspace_id: each for each in self.hosted()}
            changed = self._changes(hosted, is_all=beat % ALL_EVERY_BEATS == 0)
            self._undone.clear()
            heard = await self._heard(self.registered.registration_epoch, changed)
            self._reported = hosted
            self.host.is_draining = heard.is_draining
            self._obey(tasks, heard.orders)

    async def _heard(self, registration_epoch: int, changed: tuple[Hosted, ...]) -> HeartbeatAnswer:
        """Send one heartbeat, with one request id until it is answered or given up."""
        request_id = self.new_id()
        delay_s = RETRY_S
        while True:
            try:
                return await self.registry.heartbeat(request_id, registration_epoch, changed)
            except RegistryUnreachable as error:
                logger.warning("a heartbeat was not heard: %s", error)
                await self.clock.sleep(delay_s * (1 + self.rng() / 4))
                delay_s = min(RETRY_MAX_S, delay_s * 2)

    def _changes(self, hosted: dict[WorkspaceId, Hosted], *, is_all: bool) -> tuple[Hosted, ...]:
        """Return the workspaces that changed or are due, and those removed since the last one."""
        gone = [
            Hosted(workspace_id, reported.epoch, HostState.REMOVED)
            for workspace_id, reported in self._reported.items()
            if workspace_id not in hosted
        ]
        changed = [
            each
            for each in hosted.values()
            # A workspace with waits or attachments is in use all the time.
            if is_all
            or each.waits
            or each.attachments
            or each.workspace_id in self._undone
            or self._reported.get(each.workspace_id) != each
        ]
        return (*changed, *gone)

    async def _until_due(self, heartbeat_s: float) -> None:
        """Wait for the next heartbeat, or for a change and those that follow it closely."""
        if await is_set_within(self.host.changed, heartbeat_s, self.clock):
            await self.clock.sleep(min(GATHER_S, heartbeat_s))

    def _obey(self, tasks: asyncio.TaskGroup, orders: tuple[Order, ...]) -> None:
        for order in orders:
            if order not in self._obeying:
                self._obeying.add(order)
                tasks.create_task(self._carry_out(order))

    async def _carry_out(self, order: Order) -> None:
        try:
            match order.instruction:
                case Instruction.STOP:
                    await self.host.stop(None, order.workspace_id, order.epoch)
                case Instruction.REMOVE:
                    await self.host.remove(None, order.workspace_id, order.epoch)
        except StalePlacement:
            logger.info("an order for an older placement is left alone")
        except (OSError, ToolrunnerError):
            logger.exception("an order could not be carried out; it will come again")
            self._undone.add(order.workspace_id)
        finally:
            self._obeying.discard(order)
