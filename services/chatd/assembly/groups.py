"""What a process knows of groups, and what it does about deleted ones."""

from collections.abc import Callable
from dataclasses import dataclass

from chatd.clients.groups import CachedGroups, GatewayDeletions, GatewayGroups
from chatd.engine.group_remains import GroupRemains
from chatd.store.group_remains import PostgresGroupRemains
from parley.clock import Clock
from parley.postgres import Pool
from parley.rpc import Channels


@dataclass(frozen=True, slots=True)
class GroupKnowledge:
    """Who belongs to which groups, and what is left of those that are gone."""

    groups: CachedGroups
    remains: GroupRemains


def open_groups(
    gateways: Channels,
    pool: Pool,
    *,
    limits_changed: Callable[[], None],
    clock: Clock,
) -> GroupKnowledge:
    """Return groups as gateways tell them."""
    return GroupKnowledge(
        CachedGroups(GatewayGroups(gateways), clock),
        GroupRemains(
            PostgresGroupRemains(pool),
            GatewayDeletions(gateways),
            limits_changed=limits_changed,
            clock=clock,
        ),
    )
