"""Wiring of the slice `monitors`."""

from dataclasses import dataclass
from functools import partial

from chatd.chats.rpc.methods import shares_of
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.components import Components
from chatd.errors import ERRORS
from chatd.monitors.engine.waking import MonitorRounds
from chatd.monitors.rpc.actions import Messages, OwnerActions, Processes
from chatd.monitors.rpc.servicer import MonitorPorts, MonitorServicer
from chatd.monitors.store.monitors import PostgresMonitors


@dataclass(frozen=True, slots=True)
class MonitorComponents:
    """The components of the slice `monitors`.

    Attributes:
        rounds: Wakes chats.
        servicer: Serves monitors.
    """

    rounds: MonitorRounds
    servicer: MonitorServicer


def open_monitors(
    components: Components, messages: Messages, processes: Processes
) -> MonitorComponents:
    """Return the components, which call services of this process as the owners of monitors."""
    resources, chats = components.resources, components.chats
    store = PostgresMonitors(resources.pool)
    actions = OwnerActions(messages, processes, OwnerCalls(ERRORS))
    rounds = MonitorRounds(store, actions, resources.process.clock)
    is_shared = partial(shares_of, chats.stores, components.spend.groups)
    ports = MonitorPorts(store, chats.stores.ownership.require, is_shared)
    return MonitorComponents(rounds, MonitorServicer(ports))
