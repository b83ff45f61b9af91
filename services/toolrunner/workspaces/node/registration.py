"""Making this node known to chatd: registered, heard of regularly, and told what to do.

Theory: whatever changes is told with the next heartbeat, and told again until one was answered, so
that neither side has to remember what the other may have missed. What chatd wants done with a
workspace comes with the answers and is done beside the heartbeats, which must not wait for it. What
could not be done is told of again with the next heartbeat, so that the order comes again; and what
has not changed is told of once a minute, because what chatd wants of it may have.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Final, Protocol

from parley.clock import Clock
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import StalePlacement, ToolrunnerError
from toolrunner.workspaces.domain.placement import Hosted, HostState

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
#: Where everything starts together chatd is there soon, and until then no secret can be used.
FIRST_RETRY_S: Final = 0.25
REGISTER_MAX_S: Final = 4.0
RETRY_MAX_S: Final = 30.0
#: Changes that follow one another closely are told together.
GATHER_S: Final = 0.25
LEAVE_S: Final = 5.0
#: With every so many heartbeats everything is told.
ALL_EVERY_BEATS: Final = 6


class Instruction(StrEnum):
    """What is to be done with a workspace; names are those of the proto."""

    STOP = "stop"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Order:
    """What chatd wants done with a workspace of this node."""

    workspace_id: WorkspaceId
    epoch: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Registered:
    """The node is known."""

    registration_epoch: int
    heartbeat_s: float
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """A heartbeat was heard."""

    is_draining: bool = False
    orders: tuple[Order, ...] = ()


class RegistryUnreachable(Exception):
    """No chatd answers."""


class RegistrationStale(Exception):
    """The node has to register again."""


class Registry(Protocol):
    """The nodes as chatd keeps them."""

    async def register(self, request_id: str, hosted: tuple[Hosted, ...]) -> Registered:
        """Make the node known with everything that it hosts.

        Raises:
            RegistryUnreachable: Nobody answers.
        """
        ...

    async def heartbeat(
        self, request_id: str, registration_epoch: int, changed: tuple[Hosted, ...]
    ) -> HeartbeatAnswer:
        """Say that the node lives, and what changed.

        Raises:
            RegistryUnreachable: Nobody answers.
            RegistrationStale: The node has to register again.
        """
        ...

    async def leave(self, request_id: str, registration_epoch: int) -> None:
        """Say that the node goes.

        Raises:
            RegistryUnreachable: Nobody answers.
            RegistrationStale: The node is not known any more.
        """
        ...


class OrderTarget(Protocol):
    """Whoever stops and removes workspaces when told to.

    Attributes:
        is_draining: Whether no other workspace is taken.
    """

    is_draining: bool

    @property
    def changed(self) -> asyncio.Event:
        """Set when a workspace changed."""
        ...

    async def stop(self, request: None, workspace_id: WorkspaceId, epoch: int) -> bytes:
        """End everything in a workspace and keep its files."""
        ...

    async def remove(self, request: None, workspace_id: WorkspaceId, epoch: int) -> bytes:
        """Remove a workspace with its files."""
        ...


@dataclass
class Registration:
    """Keeps this node known for as long as it runs.

    Attributes:
        registry: Where it is made known.
        host: What it hosts, and who obeys.
        hosted: Tells of everything that it hosts.
        clock: Time between heartbeats.
        chance: A number below 1, so that nodes do not all come at once.
        new_id: Names of requests.
        registered: What chatd said last; None before.
    """

    registry: Registry
    host: OrderTarget
    hosted: Callable[[], tuple[Hosted, ...]]
    clock: Clock
    chance: Callable[[], float]
    new_id: Callable[[], str]
    registered: Registered | None = None
    known: asyncio.Event = field(default_factory=asyncio.Event)
    _told: dict[WorkspaceId, Hosted] = field(default_factory=dict)
    _obeying: set[Order] = field(default_factory=set)
    _undone: set[WorkspaceId] = field(default_factory=set)

    async def run(self) -> None:
        """Be known; runs until cancelled."""
        # After a failure no order is being carried out any more.
        self._obeying.clear()
        async with asyncio.TaskGroup() as tasks:
            delay_s = FIRST_RETRY_S
            while True:
                try:
                    await self._register(tasks)
                    delay_s = FIRST_RETRY_S
                    await self._beat(tasks)
                except RegistrationStale:
                    logger.info("chatd does not know this node any more; it registers again")
                except RegistryUnreachable as error:
                    logger.warning("no chatd takes this node: %s", error)
                    await self.clock.sleep(delay_s * (1 + self.chance() / 4))
                    delay_s = min(REGISTER_MAX_S, delay_s * 2)

    async def leave(self) -> None:
        """Say that this node goes, if anybody hears it in time."""
        if self.registered is None:
            return
        try:
            async with asyncio.timeout(LEAVE_S):
                await self.registry.leave(self.new_id(), self.registered.registration_epoch)
        except (RegistryUnreachable, RegistrationStale, TimeoutError) as error:
            logger.warning("chatd was not told that this node goes: %s", error)

    async def _register(self, tasks: asyncio.TaskGroup) -> None:
        self.host.changed.clear()
        hosted = self.hosted()
        self.registered = await self.registry.register(self.new_id(), hosted)
        self.known.set()
        self._told = {each.workspace_id: each for each in hosted}
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
            self._told = hosted
            self.host.is_draining = heard.is_draining
            self._obey(tasks, heard.orders)

    async def _heard(self, registration_epoch: int, changed: tuple[Hosted, ...]) -> HeartbeatAnswer:
        """Send one heartbeat, under one name until it is answered or given up."""
        request_id = self.new_id()
        delay_s = RETRY_S
        while True:
            try:
                return await self.registry.heartbeat(request_id, registration_epoch, changed)
            except RegistryUnreachable as error:
                logger.warning("a heartbeat was not heard: %s", error)
                await self.clock.sleep(delay_s * (1 + self.chance() / 4))
                delay_s = min(RETRY_MAX_S, delay_s * 2)

    def _changes(self, hosted: dict[WorkspaceId, Hosted], *, is_all: bool) -> tuple[Hosted, ...]:
        """Return what is otherwise than was told last or wished, and what is gone since."""
        gone = [
            Hosted(workspace_id, told.epoch, HostState.REMOVED)
            for workspace_id, told in self._told.items()
            if workspace_id not in hosted
        ]
        changed = [
            each
            for each in hosted.values()
            # Someone who stays in a workspace uses it all the time.
            if is_all
            or each.waits
            or each.attachments
            or each.workspace_id in self._undone
            or self._told.get(each.workspace_id) != each
        ]
        return (*changed, *gone)

    async def _until_due(self, heartbeat_s: float) -> None:
        """Wait for the next heartbeat, or for a change and those that come with it."""
        async with asyncio.TaskGroup() as tasks:
            due = tasks.create_task(self.clock.sleep(heartbeat_s))
            changed = tasks.create_task(self.host.changed.wait())
            await asyncio.wait((due, changed), return_when=asyncio.FIRST_COMPLETED)
            is_due = due.done()
            due.cancel()
            changed.cancel()
        if not is_due:
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
