"""Wiring of the slice `approvals`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from chatd.approvals.domain.rules import Scope
from chatd.approvals.engine.cached_rules import CachedRules, notice_key
from chatd.approvals.engine.judge import Judge
from chatd.approvals.engine.tree_taint import TreeTaint
from chatd.approvals.store.rules import PostgresRules
from chatd.approvals.store.trees import TreeVersions
from chatd.bus_handlers import APPROVALS_TOPIC
from chatd.chats.domain.chat import Message
from chatd.models.wiring import ModelComponents
from chatd.primitives.domain.ids import ChatId
from chatd.resources import Resources
from chatd.workspaces.engine.reach import WorkspaceReach
from chatd.workspaces.wiring import WorkspaceComponents
from parley.bus import Notice


@dataclass(frozen=True, slots=True)
class ApprovalComponents:
    """The components of the slice `approvals`.

    Attributes:
        rules: The stored rules.
        cached: The rules that turns go by.
        judge: Judges the calls of turns.
    """

    rules: PostgresRules
    cached: CachedRules
    judge: Judge


def open_approvals(
    resources: Resources,
    catalogue: ModelComponents,
    workspaces: WorkspaceComponents,
    history: Callable[[ChatId], Awaitable[Sequence[Message]]],
) -> ApprovalComponents:
    """Return the components; a change reaches every process, this one at once."""

    def changed(scope: Scope) -> None:
        cached.on_notice(notice_key(scope))
        resources.bus.publish(Notice(APPROVALS_TOPIC, notice_key(scope), 0))

    rules = PostgresRules(resources.pool, changed)
    cached = CachedRules(rules, resources.process.clock)
    reach = WorkspaceReach(
        workspaces.control.workspaces, workspaces.known_nodes, catalogue.configuration
    )
    tree = TreeTaint(catalogue.configuration.chat, TreeVersions(resources.pool).of_tree, history)
    return ApprovalComponents(rules, cached, Judge(cached, reach, tree))
