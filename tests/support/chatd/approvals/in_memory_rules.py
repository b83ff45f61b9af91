"""Approval rules in memory, and a judge of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatd.approvals.domain.rules import Effect, Rule, Scope, ScopeKind
from chatd.approvals.domain.taint import Workspace
from chatd.approvals.engine.cached_rules import CachedRules
from chatd.approvals.engine.judge import Judge
from chatd.approvals.engine.tree_taint import TreeTaint
from chatd.chats.domain.chat import Message
from chatd.chats.domain.commands import RememberedCall
from chatd.content.domain.messages import ChatMode
from chatd.models.domain.profile import NO_CHOICE
from chatd.models.store.catalogue import ChatFacts
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


@dataclass(slots=True)
class Tree:
    """The chats of one tree in memory, with how often each history was read."""

    histories: dict[ChatId, Sequence[Message]] = field(default_factory=dict)
    reads: list[ChatId] = field(default_factory=list)

    async def facts(self, chat_id: ChatId) -> ChatFacts:
        is_parent = len(self.histories) > 1
        return ChatFacts(NO_CHOICE, ChatMode.ORDINARY, has_children=is_parent)

    async def versions(self, root_chat_id: ChatId) -> dict[ChatId, int]:
        return {chat_id: len(history) for chat_id, history in self.histories.items()}

    async def history(self, chat_id: ChatId) -> Sequence[Message]:
        self.reads.append(chat_id)
        return self.histories[chat_id]


def judge_of(rules: Rules, workspaces: Workspaces | None = None, tree: Tree | None = None) -> Judge:
    tree = tree or Tree()
    taint = TreeTaint(tree.facts, tree.versions, tree.history)
    return Judge(CachedRules(rules, FakeClock()), workspaces or Workspaces(), taint)
