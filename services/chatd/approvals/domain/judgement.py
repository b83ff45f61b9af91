"""The judgement of a call: whether it runs, waits for a person's approval, or is refused.

Theory: each scope has its own answer, which is that of its most specific rule. Between the scopes
the strictest answer decides. Two questions are built in, as if the installation had rules for them:
that of an MCP server whose policy asks, and that of a call that could carry data out after content
from outside entered the chat. A remembered approval settles questions and never a refusal.

A shell command is judged program by program, and the strictest answer decides. A rule that only
may match, because words of the command are not known, asks instead of denying. What is typed into a
running program may run anything there, whatever the text is, so rules about commands ask about it,
and rules that ask about or deny every command do so for it too.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chatd.approvals.domain.programs import UNKNOWN_PROGRAM, Program, programs_of
from chatd.approvals.domain.rules import (
    Effect,
    Match,
    Rule,
    ScopeKind,
    match_call,
    match_program,
)
from chatd.approvals.domain.taint import (
    CLEAN,
    CONFINED,
    TEMPLATE_TOOLS,
    Taint,
    Workspace,
    outside_origins,
)
from chatd.content.domain.arguments import parsed
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Executor, ToolSpec

#: Tools that run a shell command, and the argument with it.
COMMAND_ARGUMENTS: Final[Mapping[str, str]] = {"execute": "command"}
#: The tool that writes to the input of a running process, and keys that only end one.
INPUT_TOOL: Final = "process_write"
ENDING_KEYS: Final = frozenset({"ctrl-c", "ctrl-d"})
_SCOPES: Final[Mapping[ScopeKind, str]] = {
    ScopeKind.INSTALLATION: "the installation",
    ScopeKind.USER: "yours",
    ScopeKind.CHAT: "this chat",
}
SHOWN_CHARACTERS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Allow:
    """The call runs."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The call waits for a person's approval.

    Attributes:
        rule_id: The rule that asks; empty for a built-in question.
        is_rememberable: Whether an approval can hold for the same call in this chat.
    """

    reason: str
    rule_id: str = ""
    is_rememberable: bool = True


@dataclass(frozen=True, slots=True)
class Deny:
    """The call is refused."""

    reason: str
    rule_id: str = ""


Judgement = Allow | Ask | Deny


@dataclass(frozen=True, slots=True)
class _Question:
    """One reason to ask, and whether an approval for the chat settles it."""

    reason: str
    rule_id: str
    is_rememberable: bool
    is_taint: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer of one scope for one program."""

    effect: Effect
    rule: Rule
    program: Program | None

    @property
    def is_for_tainted(self) -> bool:
        return self.effect is Effect.ALLOW and self.rule.is_for_tainted


def arguments_digest(call: ToolCall, server_id: str = "") -> str:
    """Return the SHA-256 of the tool, its server and the arguments, in lower-case hex.

    An approval is bound to it: with other arguments the call is another one.
    """
    return _digest(call.tool_name, server_id or call.mcp_server_id, _arguments(call))


def remembered_digest(call: ToolCall, server_id: str = "") -> str:
    """Return the digest by which an approval for a chat finds the same call again.

    Of a command only the text, the directory and the variables count, not how long to wait for it.
    """
    arguments = _arguments(call)
    if call.tool_name in COMMAND_ARGUMENTS and isinstance(arguments, dict):
        counting = (COMMAND_ARGUMENTS[call.tool_name], "workdir", "env")
        arguments = {name: arguments[name] for name in counting if arguments.get(name)}
    return _digest("remembered", call.tool_name, server_id or call.mcp_server_id, arguments)


def judge(
    call: ToolCall,
    spec: ToolSpec,
    mode: ChatMode,
    rules: Sequence[Rule],
    taint: Taint = CLEAN,
    workspace: Workspace = CONFINED,
) -> Judgement:
    """Return whether a call runs; `rules` are those of all scopes of its chat."""
    arguments = _arguments(call)
    matching = [
        rule
        for rule in rules
        if not rule.digest
        and any(
            match_call(rule, tool=tool, server_id=spec.server_id, mode=mode, arguments=arguments)
            for tool in _tools_of(call, rule, arguments)
        )
    ]
    # Without rules about commands all programs of a call would get the same answers.
    is_parsed = any(rule.command for rule in matching)
    programs = _programs_of(call, arguments) if is_parsed else (None,)
    answers = list(_answers(matching, programs))
    for answer in answers:
        if answer.effect is Effect.DENY:
            return Deny(_reason(answer, call, "refuses"), answer.rule.id)
    questions = [
        *(_question(answer, call) for answer in answers if answer.effect is Effect.ASK),
        *_policy_questions(spec, answers),
        *_taint_questions(
            spec, taint if _has_content(spec, arguments) else CLEAN, workspace, programs, answers
        ),
    ]
    open_questions = [each for each in questions if not _is_settled(each, call, spec, rules)]
    if not open_questions:
        return Allow()
    first = open_questions[0]
    is_rememberable = all(each.is_rememberable for each in open_questions)
    return Ask(first.reason, first.rule_id, is_rememberable)


def _answers(rules: Sequence[Rule], programs: Sequence[Program | None]) -> Iterator[_Answer]:
    """Yield the answers of all scopes for all programs."""
    ordered = sorted(
        rules, key=lambda rule: (rule.specificity, rule.effect.strictness), reverse=True
    )
    for kind in ScopeKind:
        of_scope = [rule for rule in ordered if rule.scope.kind is kind]
        for program in programs if of_scope else ():
            answer = _answer(of_scope, program)
            if answer is not None:
                yield answer


def _answer(ordered: Iterable[Rule], program: Program | None) -> _Answer | None:
    """Return the answer of the rules of one scope, the most specific first; None for none."""
    possible: _Answer | None = None
    for rule in ordered:
        if program is not None and program.is_carrier and not _is_about_carriers(rule):
            continue
        match match_program(rule, program):
            case Match.MAYBE if rule.effect is not Effect.ALLOW:
                possible = possible or _Answer(Effect.ASK, rule, program)
            case Match.YES:
                if possible is not None and rule.effect is not Effect.DENY:
                    return possible
                return _Answer(rule.effect, rule, program)
            case _:
                continue
    return possible


def _is_about_carriers(rule: Rule) -> bool:
    return bool(rule.command) and rule.effect is not Effect.ALLOW


def _policy_questions(spec: ToolSpec, answers: Sequence[_Answer]) -> Iterator[_Question]:
    """Yield the question of an MCP server's policy, which a rule of the installation replaces.

    For servers that a workspace defines there is no policy of an administrator: any rule that
    allows the call replaces the question.
    """
    if not spec.needs_approval:
        return
    is_of_workspace = spec.executor is Executor.TOOLRUNNER
    for answer in answers:
        if answer.rule.scope.kind is ScopeKind.INSTALLATION or is_of_workspace:
            return
    reason = f"the policy of the MCP server asks before {spec.name}"
    if is_of_workspace:
        reason = f"{spec.name} is a tool of an MCP server of the workspace"
    yield _Question(reason, "", True)


def _taint_questions(
    spec: ToolSpec,
    taint: Taint,
    workspace: Workspace,
    programs: Sequence[Program | None],
    answers: Sequence[_Answer],
) -> Iterator[_Question]:
    """Yield the question about data that may be carried out, unless rules allow every program."""
    origins = outside_origins(spec, taint, workspace)
    if not origins:
        return
    needed = [program for program in programs if program is None or not program.is_carrier]
    allowed = [answer.program for answer in answers if answer.is_for_tainted]
    if needed and all(any(each is program for each in allowed) for program in needed):
        return
    known = sorted(origin for origin in origins if " " in origin)
    told = " and ".join(known) if known else "an MCP server"
    yield _Question(
        f"the chat has read content of {told}, and {spec.name} could send data out",
        "",
        is_rememberable=True,
        is_taint=True,
    )


def _has_content(spec: ToolSpec, arguments: object) -> bool:
    """Return whether arguments have content that could be sent out: of a template, parameters."""
    if spec.name not in TEMPLATE_TOOLS:
        return True
    return not isinstance(arguments, dict) or bool(arguments.get("parameters"))


def _question(answer: _Answer, call: ToolCall) -> _Question:
    rule = answer.rule
    is_rememberable = rule.is_rememberable or rule.scope.kind is not ScopeKind.INSTALLATION
    return _Question(_reason(answer, call, "asks before"), rule.id, is_rememberable)


def _is_settled(question: _Question, call: ToolCall, spec: ToolSpec, rules: Sequence[Rule]) -> bool:
    """Return whether a remembered approval of this very call answers a question."""
    if not question.is_rememberable:
        return False
    remembered = [rule for rule in rules if rule.digest]
    if not remembered:
        return False
    digest = remembered_digest(call, spec.server_id)
    return any(
        rule.digest == digest and (rule.is_for_tainted or not question.is_taint)
        for rule in remembered
    )


def _reason(answer: _Answer, call: ToolCall, verb: str) -> str:
    rule = answer.rule
    what = call.tool_name if answer.program is None else answer.program.text or call.tool_name
    shown = what if len(what) <= SHOWN_CHARACTERS_MAX else f"{what[:SHOWN_CHARACTERS_MAX]}…"
    if answer.program is not None and answer.program.is_opaque:
        is_unknown = not answer.program.text.strip("… ")
        shown = "text that may run anything" if is_unknown else f"{shown}, which may run anything"
    elif answer.program is not None and answer.program.is_indirect:
        shown = f"{shown}, which may run {rule.command}"
    told = f"a rule of {_SCOPES[rule.scope.kind]} {verb} {shown}"
    return f"{told}: {rule.reason}" if rule.reason else told


def _tools_of(call: ToolCall, rule: Rule, arguments: object) -> tuple[str, ...]:
    """Return the tools whose rules hold for a call: typing into a program is running a command."""
    is_strict = rule.effect is not Effect.ALLOW
    is_typed = call.tool_name == INPUT_TOOL and is_strict and not _is_ending(arguments)
    return (call.tool_name, *COMMAND_ARGUMENTS) if is_typed else (call.tool_name,)


def _is_ending(arguments: object) -> bool:
    """Return whether input only ends a process."""
    if not isinstance(arguments, dict):
        return False
    keys = arguments.get("keys") or []
    is_known = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
    return not arguments.get("text") and is_known and ENDING_KEYS.issuperset(keys)


def _programs_of(call: ToolCall, arguments: object) -> tuple[Program | None, ...]:
    """Return the programs of a call that runs a command; None stands for the call itself."""
    if call.tool_name == INPUT_TOOL and not _is_ending(arguments):
        return (UNKNOWN_PROGRAM,)
    name = COMMAND_ARGUMENTS.get(call.tool_name)
    if name is None or not isinstance(arguments, dict):
        return (None,)
    command, variables = arguments.get(name), arguments.get("env")
    if not isinstance(command, str):
        return (None,)
    given = variables if isinstance(variables, dict) else {}
    assignments = tuple(f"{key}={value}" for key, value in given.items())
    programs = programs_of(command, assignments)
    return (*programs, None) if all(program.is_carrier for program in programs) else programs


def _arguments(call: ToolCall) -> object:
    """Return the arguments; a text that is no JSON object stays a text and is refused later."""
    try:
        return parsed(call.args_json)
    except ValueError:
        return call.args_json


def _digest(*values: object) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
