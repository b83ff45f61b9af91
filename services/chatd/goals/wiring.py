"""Wiring of the slice `goals`."""

from dataclasses import dataclass

from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.chats.wiring import ChatComponents
from chatd.errors import ERRORS
from chatd.goals.engine.pursuit import GoalPursuit
from chatd.goals.rpc.actions import Messages, OwnerActions, Processes
from chatd.goals.rpc.servicer import GoalPorts, GoalServicer
from chatd.goals.store.goals import PostgresGoals
from chatd.resources import Resources


@dataclass(frozen=True, slots=True)
class GoalComponents:
    """The components of the slice `goals`.

    Attributes:
        pursuit: Lets chats go on towards their goals.
        servicer: Serves goals.
    """

    pursuit: GoalPursuit
    servicer: GoalServicer


def open_goals(
    resources: Resources, chats: ChatComponents, messages: Messages, processes: Processes
) -> GoalComponents:
    """Return the components, which call services of this process as the owners of goals."""
    store, clock = PostgresGoals(resources.pool), resources.process.clock
    actions = OwnerActions(messages, processes, OwnerCalls(ERRORS))
    pursuit = GoalPursuit(store, actions, clock)
    ports = GoalPorts(store, chats.stores.ownership.require, clock.now, pursuit.poke)
    return GoalComponents(pursuit, GoalServicer(ports))
