"""Wiring of the slice `goals`."""

from dataclasses import dataclass
from functools import partial

from chatd.chats.rpc.defaults import ConfiguredDefaults
from chatd.chats.rpc.methods import shares_of
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.components import Components
from chatd.errors import ERRORS
from chatd.goals.engine.judging import ModelJudge
from chatd.goals.engine.pursuit import GoalPursuit
from chatd.goals.rpc.actions import Messages, OwnerActions, Processes
from chatd.goals.rpc.servicer import GoalPorts, GoalServicer
from chatd.goals.store.goals import PostgresGoals
from chatd.turns.wiring import side_calls_of


@dataclass(frozen=True, slots=True)
class GoalComponents:
    """The components of the slice `goals`.

    Attributes:
        pursuit: Lets chats go on towards their goals.
        servicer: Serves goals.
    """

    pursuit: GoalPursuit
    servicer: GoalServicer


def open_goals(components: Components, messages: Messages, processes: Processes) -> GoalComponents:
    """Return the components, which call services of this process as the owners of goals."""
    resources, chats, spend = components.resources, components.chats, components.spend
    catalogue, worker = components.catalogue, components.worker
    store, clock = PostgresGoals(resources.pool), resources.process.clock
    actions = OwnerActions(messages, processes, OwnerCalls(ERRORS))
    judge = ModelJudge(
        side_calls_of(resources, catalogue, spend, worker.setups, worker.open_calls),
        history=chats.chats.history,
        bill=spend.bills.enter,
    )
    pursuit = GoalPursuit(store, actions, judge, clock)
    ports = GoalPorts(
        store,
        chats.stores.ownership.require,
        partial(shares_of, chats.stores, spend.groups),
        ConfiguredDefaults(catalogue.configuration),
        clock.now,
        pursuit.poke,
    )
    return GoalComponents(pursuit, GoalServicer(ports))
