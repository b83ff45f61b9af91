"""Wiring of the slice `monitors`."""

from dataclasses import dataclass

from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.chats.wiring import ChatComponents
from chatd.errors import ERRORS
from chatd.monitors.engine.waking import MonitorRounds
from chatd.monitors.rpc.actions import Messages, OwnerActions, Processes
from chatd.monitors.rpc.servicer import MonitorPorts, MonitorServicer
from chatd.monitors.store.monitors import PostgresMonitors
from chatd.resources import Resources


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
    resources: Resources, chats: ChatComponents, messages: Messages, processes: Processes
) -> MonitorComponents:
    """Return the components, which call services of this process as the owners of monitors."""
    store = PostgresMonitors(resources.pool)
    actions = OwnerActions(messages, processes, OwnerCalls(ERRORS))
    rounds = MonitorRounds(store, actions, resources.process.clock)
    return MonitorComponents(
        rounds, MonitorServicer(MonitorPorts(store, chats.stores.ownership.require))
    )
