"""Approval rules in memory, and a judge of them."""

from dataclasses import dataclass, field

from chatd.approvals.domain.rules import Effect, Rule, Scope, ScopeKind
from chatd.approvals.domain.taint import Workspace
from chatd.approvals.engine.cached_rules import CachedRules
from chatd.approvals.engine.judge import Judge
from chatd.chats.domain.commands import RememberedCall
from chatd.primitives.domain.ids import ChatId
from parley.clock import FakeClock


@dataclass(slots=True)
class Rules:
    """Rules in memory, as the store has them."""

    kept: list[Rule] = field(default_factory=list)
    changed: list[Scope] = field(default_factory=list)
    reads: list[Scope] = field(default_factory=list)

    async def of_scope(self, scope: Scope) -> tuple[Rule, ...]:
        self.reads.append(scope)
        return tuple(rule for rule in self.kept if rule.scope == scope)

    async def are_there_any(self, kind: ScopeKind) -> bool:
        return any(rule.scope.kind is kind for rule in self.kept)

    def remember(self, call: RememberedCall) -> None:
        """Keep a remembered call as the commit of its approval does."""
        scope = Scope(ScopeKind.CHAT, call.root_chat_id)
        rule = Rule(
            call.rule_id,
            scope,
            Effect.ALLOW,
            tool=call.tool,
            server_id=call.server_id,
            is_for_tainted=call.is_for_tainted,
            digest=call.digest,
        )
        self.kept = [each for each in self.kept if each.id != rule.id] + [rule]
        self.changed.append(scope)


@dataclass(slots=True)
class Workspaces:
    """One workspace for all chats, with how often it was read."""

    workspace: Workspace = field(default_factory=lambda: Workspace(has_egress=True))
    is_outside: bool = False
    reads: int = 0

    async def are_repositories_outside(self) -> bool:
        return self.is_outside

    async def of_chat(self, chat_id: ChatId) -> Workspace:
        self.reads += 1
        return self.workspace


def judge_of(rules: Rules, workspaces: Workspaces | None = None) -> Judge:
    return Judge(CachedRules(rules, FakeClock()), workspaces or Workspaces())
