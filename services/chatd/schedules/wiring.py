"""Wiring of the slice `schedules`."""

from dataclasses import dataclass
from functools import partial

from chatd.chats.rpc.defaults import Defaults
from chatd.chats.rpc.methods import shares_of
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.chats.rpc.references import References
from chatd.chats.wiring import ChatComponents
from chatd.errors import ERRORS
from chatd.resources import Resources
from chatd.schedules.engine.running import ScheduleRuns
from chatd.schedules.rpc.sending import ChatMethods, ChatSender
from chatd.schedules.rpc.servicer import SchedulePorts, ScheduleServicer
from chatd.schedules.store.due_runs import PostgresDueRuns
from chatd.schedules.store.schedules import PostgresSchedules
from chatd.users.domain.groups import Groups


@dataclass(frozen=True, slots=True)
class ScheduleComponents:
    """The components of the slice `schedules`.

    Attributes:
        runs: Sends what is due.
        servicer: Serves the schedules of users.
    """

    runs: ScheduleRuns
    servicer: ScheduleServicer


def open_schedules(
    resources: Resources,
    chats: ChatComponents,
    methods: ChatMethods,
    *,
    references: References,
    defaults: Defaults,
    groups: Groups,
) -> ScheduleComponents:
    """Return the components; runs are sent through the methods of ChatService."""
    pool, clock = resources.pool, resources.process.clock
    runs = ScheduleRuns(PostgresDueRuns(pool), ChatSender(methods, OwnerCalls(ERRORS)), clock)
    ports = SchedulePorts(
        PostgresSchedules(pool),
        chats.stores.ownership.require,
        partial(shares_of, chats.stores, groups),
        references,
        defaults,
        clock.now,
        runs.poke,
    )
    return ScheduleComponents(runs, ScheduleServicer(ports))
