"""Conversion and validation of approval rules."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from chatd.approvals.domain.judgement import COMMAND_ARGUMENTS
from chatd.approvals.domain.rules import Effect, Rule, ScopeKind, command_problem, is_like
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.tools import BUILT_IN_TOOL_NAMES
from chatd.primitives.domain.errors import InvalidRequest, all_of
from chatd.primitives.rpc import fields
from parley.api.chat.v1 import approval_pb2

FIELDS: Final = (
    "effect",
    "tool",
    "server_id",
    "modes",
    "command",
    "arguments",
    "reason",
    "rememberable",
    "after_outside_content",
)
_TOOL: Final = re.compile(r"[A-Za-z0-9_*-]*")
EFFECTS: Final[Mapping[int, Effect]] = {
    approval_pb2.APPROVAL_EFFECT_ALLOW: Effect.ALLOW,
    approval_pb2.APPROVAL_EFFECT_ASK: Effect.ASK,
    approval_pb2.APPROVAL_EFFECT_DENY: Effect.DENY,
}
MODES: Final[Mapping[int, ChatMode]] = {
    approval_pb2.APPROVAL_MODE_ORDINARY: ChatMode.ORDINARY,
    approval_pb2.APPROVAL_MODE_PLAN: ChatMode.PLAN,
    approval_pb2.APPROVAL_MODE_EXPLORE: ChatMode.EXPLORE,
}


def rule_with(rule: Rule, given: approval_pb2.ApprovalRule, changed: frozenset[str]) -> Rule:
    """Return a rule with the changed fields taken from a request.

    Raises:
        InvalidRequest: Some of them are invalid.
    """
    if rule.digest:
        raise InvalidRequest(
            "update_mask", "is of a remembered approval, which can only be deleted"
        )
    checks: Mapping[str, tuple[str, Callable[[], Any]]] = {
        "effect": ("effect", lambda: _effect(given)),
        "tool": ("tool", lambda: _tool(given.tool)),
        "server_id": (
            "server_id",
            lambda: fields.optional_uuid(given.server_id, "rule.server_id"),
        ),
        "modes": ("modes", lambda: _modes(given)),
        "command": ("command", lambda: _command(given.command)),
        "arguments": ("arguments", lambda: dict(given.arguments)),
        "reason": ("reason", lambda: given.reason.strip()),
        "rememberable": ("is_rememberable", lambda: given.rememberable),
        "after_outside_content": ("is_for_tainted", lambda: given.after_outside_content),
    }
    named = [name for name in FIELDS if name in changed]
    values = all_of(checks[name][1] for name in named)
    return _consistent(
        replace(rule, **{checks[name][0]: value for name, value in zip(named, values, strict=True)})
    )


def rule_to_proto(rule: Rule) -> approval_pb2.ApprovalRule:
    """Convert a rule to its proto."""
    shown = approval_pb2.ApprovalRule(
        id=rule.id,
        scope=approval_pb2.ApprovalScope.Value(f"APPROVAL_SCOPE_{rule.scope.kind.name}"),
        effect=approval_pb2.ApprovalEffect.Value(f"APPROVAL_EFFECT_{rule.effect.name}"),
        tool=rule.tool,
        server_id=rule.server_id,
        modes=sorted(
            approval_pb2.ApprovalMode.Value(f"APPROVAL_MODE_{mode.name}") for mode in rule.modes
        ),
        command=rule.command,
        arguments=rule.arguments,
        reason=rule.reason,
        rememberable=rule.is_rememberable,
        after_outside_content=rule.is_for_tainted,
        remembered=bool(rule.digest),
        etag=str(rule.version),
        chat_id=rule.scope.id if rule.scope.kind is ScopeKind.CHAT else "",
    )
    if rule.created_at is not None:
        shown.created_at.FromDatetime(rule.created_at)
    return shown


def _consistent(rule: Rule) -> Rule:
    """Return a rule whose fields fit together."""
    is_installations = rule.scope.kind is ScopeKind.INSTALLATION
    if rule.is_rememberable and not (is_installations and rule.effect is Effect.ASK):
        raise InvalidRequest("rule.rememberable", "is for rules of the installation that ask")
    if rule.is_for_tainted and (
        rule.effect is not Effect.ALLOW or rule.scope.kind is ScopeKind.USER
    ):
        raise InvalidRequest(
            "rule.after_outside_content", "is for rules of the installation or a chat that allow"
        )
    runs_commands = any(is_like(rule.tool or "*", name) for name in COMMAND_ARGUMENTS)
    if rule.command and (rule.server_id or not runs_commands):
        raise InvalidRequest(
            "rule.command", f"is for {', '.join(COMMAND_ARGUMENTS)}; name that tool or none"
        )
    if rule.server_id and rule.tool in BUILT_IN_TOOL_NAMES:
        raise InvalidRequest("rule.server_id", f"has no tool {rule.tool}; leave one of them out")
    return rule


def _effect(given: approval_pb2.ApprovalRule) -> Effect:
    effect = EFFECTS.get(given.effect)
    if effect is None:
        raise InvalidRequest("rule.effect", "is not known")
    return effect


def _modes(given: approval_pb2.ApprovalRule) -> frozenset[ChatMode]:
    for index, mode in enumerate(given.modes):
        if mode not in MODES:
            raise InvalidRequest(f"rule.modes[{index}]", "is not known")
    return frozenset(MODES[mode] for mode in given.modes)


def _command(text: str) -> str:
    command = _pattern(text, "rule.command")
    problem = command_problem(command) if command else ""
    if problem:
        raise InvalidRequest("rule.command", problem)
    return command


def _tool(text: str) -> str:
    tool = text.strip()
    if not _TOOL.fullmatch(tool):
        raise InvalidRequest(
            "rule.tool", "is no name of a tool; give A-Z, a-z, 0-9, _ and -, and * for any text"
        )
    return tool


def _pattern(text: str, field: str) -> str:
    pattern = text.strip()
    if not pattern.isprintable():
        raise InvalidRequest(field, "has line breaks or control characters")
    return pattern
