"""Wiring of the slice `spend`: groups, limits and the ledger."""

from collections.abc import Callable
from dataclasses import dataclass

from chatd.bus_handlers import LIMITS_TOPIC
from chatd.offboarding.engine.group_cleanup import GroupCleanup
from chatd.offboarding.store.group_cleanup import PostgresGroupCleanup
from chatd.resources import Resources
from chatd.spend.engine.enforcement import LimitedSpending
from chatd.spend.engine.late_bills import DeferredBills
from chatd.spend.store.ledger import PostgresLedger
from chatd.spend.store.limits import PostgresLimits
from chatd.users.clients.groups import CachedGroups, GatewayDeletions, GatewayGroups
from parley.bus import Notice


@dataclass(frozen=True, slots=True)
class SpendComponents:
    """The components of the slice `spend`.

    Attributes:
        groups: The cached groups of users.
        group_cleanup: Removes the rows of deleted groups.
        limits: The stored limits.
        limits_changed: Publishes to every process, this one included, that a limit changed.
        spending: Enforces the limits.
        bills: Enters bills into the ledger, at once or in the background.
    """

    groups: CachedGroups
    group_cleanup: GroupCleanup
    limits: PostgresLimits
    limits_changed: Callable[[], None]
    spending: LimitedSpending
    bills: DeferredBills


def open_spend(resources: Resources) -> SpendComponents:
    """Return the components, with groups read from gateways."""
    clock = resources.process.clock
    groups = CachedGroups(GatewayGroups(resources.gateways), clock)
    limits = PostgresLimits(resources.pool)
    spending = LimitedSpending(limits, groups, clock)

    def limits_changed() -> None:
        spending.forget()
        resources.bus.publish(Notice(LIMITS_TOPIC, LIMITS_TOPIC, 0))

    return SpendComponents(
        groups=groups,
        group_cleanup=GroupCleanup(
            PostgresGroupCleanup(resources.pool),
            GatewayDeletions(resources.gateways),
            limits_changed=limits_changed,
            clock=clock,
        ),
        limits=limits,
        limits_changed=limits_changed,
        spending=spending,
        bills=DeferredBills(PostgresLedger(resources.pool), clock),
    )
