"""Wiring of the slice `approvals`."""

from dataclasses import dataclass

from chatd.approvals.domain.rules import Scope
from chatd.approvals.engine.cached_rules import CachedRules, notice_key
from chatd.approvals.store.rules import PostgresRules
from chatd.bus_handlers import APPROVALS_TOPIC
from chatd.resources import Resources
from parley.bus import Notice


@dataclass(frozen=True, slots=True)
class ApprovalComponents:
    """The stored rules, and the cache that turns judge by."""

    rules: PostgresRules
    cached: CachedRules


def open_approvals(resources: Resources) -> ApprovalComponents:
    """Return the components; a change reaches every process, this one at once."""

    def changed(scope: Scope) -> None:
        cached.on_notice(notice_key(scope))
        resources.bus.publish(Notice(APPROVALS_TOPIC, notice_key(scope), 0))

    rules = PostgresRules(resources.pool, changed)
    cached = CachedRules(rules, resources.process.clock)
    return ApprovalComponents(rules, cached)
