"""Judges the calls of an answer by the stored rules and the history of their chat."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from chatd.approvals.domain.judgement import Judgement, judge, remembered_digest
from chatd.approvals.domain.rules import RULES_MAX
from chatd.approvals.domain.taint import (
    CLEAN,
    CONFINED,
    Taint,
    Workspace,
    outside_origins,
    taint_of,
)
from chatd.approvals.engine.cached_rules import CachedRules
from chatd.approvals.engine.tree_taint import TreeTaint
from chatd.chats.domain.chat import Message
from chatd.chats.domain.commands import RememberedCall
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId

SHOWN_CHARACTERS_MAX = 200
_ANY = Taint(frozenset({"anything"}))


class ChatWorkspaces(Protocol):
    """What is known of the workspaces of chats."""

    async def are_repositories_outside(self) -> bool:
        """Return whether files of cloned repositories count as content from outside."""
        ...

    async def of_chat(self, chat_id: ChatId) -> Workspace:
        """Return what the judgement has to know of a chat's workspace."""
        ...


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges calls.

    Attributes:
        rules: The rules of all scopes.
        workspaces: The workspaces of chats; read only if something came from outside.
        tree: What entered the other chats of a tree.
    """

    rules: CachedRules
    workspaces: ChatWorkspaces
    tree: TreeTaint

    async def judge(
        self,
        context: TurnContext,
        history: Sequence[Message],
        calls: Iterable[ToolCall],
        specs: Mapping[str, ToolSpec],
    ) -> Mapping[str, Judgement]:
        """Return the judgement of every call of an offered tool, by its id.

        Raises:
            DatabaseUnavailable: The rules or the workspace cannot be read.
        """
        known = [(call, specs[call.tool_name]) for call in calls if call.tool_name in specs]
        rules = await self.rules.of_turn(context.owner.id, context.root_chat_id)
        taint, workspace = await self._taint(context, history, [spec for _, spec in known])
        return {
            call.tool_call_id: judge(call, spec, context.mode, rules, taint, workspace)
            for call, spec in known
        }

    async def remembered(
        self, context: TurnContext, history: Sequence[Message], call: ToolCall, spec: ToolSpec
    ) -> RememberedCall:
        """Return the rule that lets the same call run in this chat without a question.

        After content from outside entered the chat, it holds for that too.
        """
        taint, workspace = await self._taint(context, history, [spec])
        digest = remembered_digest(call, spec.server_id)
        root_chat_id = context.root_chat_id
        return RememberedCall(
            rule_id=str(uuid.uuid5(uuid.UUID(root_chat_id), f"remembered {digest}")),
            root_chat_id=root_chat_id,
            tool=call.tool_name,
            server_id=spec.server_id,
            reason=f"Approved: {call.args_json[:SHOWN_CHARACTERS_MAX]}",
            is_for_tainted=bool(outside_origins(spec, taint, workspace)),
            digest=digest,
            rules_max=RULES_MAX,
        )

    async def _taint(
        self, context: TurnContext, history: Sequence[Message], specs: Sequence[ToolSpec]
    ) -> tuple[Taint, Workspace]:
        """Return the taint of a chat and its tree, if one of the tools could carry data out."""
        is_outside = await self.workspaces.are_repositories_outside()
        widest = Workspace(True, is_outside, is_outside, is_proxied=True)
        if not any(outside_origins(spec, _ANY, widest) for spec in specs):
            return CLEAN, CONFINED
        is_alone = await self.tree.is_alone(context)
        # The answer that makes the calls is not in the history yet.
        told = frozenset(context.workspace_server_ids)
        if is_alone and not told and taint_of(history, widest) == CLEAN:
            return CLEAN, CONFINED
        workspace = await self.workspaces.of_chat(context.chat_id)
        if is_alone:
            taint = taint_of(history, workspace)
        else:
            taint = await self.tree.of_tree(context, history, workspace)
        return Taint(taint.origins | told), workspace
