"""Who belongs to which groups, and what each of them may spend."""

from collections.abc import Callable
from dataclasses import dataclass

from chatd.bus_handlers import LIMITS_TOPIC
from chatd.offboarding.engine.group_cleanup import GroupRemains
from chatd.offboarding.store.group_cleanup import PostgresGroupRemains
from chatd.resources import Ground
from chatd.spend.engine.enforcement import LimitedSpending
from chatd.spend.engine.late_bills import LateBills
from chatd.spend.store.ledger import PostgresLedger
from chatd.spend.store.limits import PostgresLimits
from chatd.users.clients.groups import CachedGroups, GatewayDeletions, GatewayGroups
from parley.bus import Notice


@dataclass(frozen=True, slots=True)
class Budget:
    """What users may spend, alone and by their groups.

    Attributes:
        groups: Who belongs to which groups.
        remains: What is left of groups that are gone.
        limits: What may be spent, as it is stored.
        limits_changed: Tells every process, this one included, that a limit is another.
        spending: Says whether something may be spent.
        bills: Writes down what was spent behind turns.
    """

    groups: CachedGroups
    remains: GroupRemains
    limits: PostgresLimits
    limits_changed: Callable[[], None]
    spending: LimitedSpending
    bills: LateBills


def open_budget(ground: Ground) -> Budget:
    """Return what users may spend, with groups as gateways tell them."""
    clock = ground.process.clock
    groups = CachedGroups(GatewayGroups(ground.gateways), clock)
    limits = PostgresLimits(ground.pool)
    spending = LimitedSpending(limits, groups, clock)

    def limits_changed() -> None:
        spending.forget()
        ground.bus.publish(Notice(LIMITS_TOPIC, LIMITS_TOPIC, 0))

    return Budget(
        groups=groups,
        remains=GroupRemains(
            PostgresGroupRemains(ground.pool),
            GatewayDeletions(ground.gateways),
            limits_changed=limits_changed,
            clock=clock,
        ),
        limits=limits,
        limits_changed=limits_changed,
        spending=spending,
        bills=LateBills(PostgresLedger(ground.pool), clock),
    )
