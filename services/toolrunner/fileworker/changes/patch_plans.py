"""Planning of a patch, with a report of everything in it that does not apply."""

from dataclasses import dataclass, field
from typing import assert_never

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.changes.drafts import AliasedPath, Draft, Drafts
from toolrunner.fileworker.changes.text_plans import missing, problem, problem_of, put_text, text_in
from toolrunner.fileworker.edits.diff import LINES_MAX
from toolrunner.fileworker.edits.patch import patched
from toolrunner.fileworker.edits.patch_grammar import (
    AddFile,
    DeleteFile,
    Operation,
    PatchSyntaxError,
    UpdateFile,
    parse,
)
from toolrunner.fileworker.protocol import PlanPatch
from toolrunner.fileworker.values import Problem, ProblemKind


@dataclass
class PatchPlan:
    """The files of a patch in its order, and the problems."""

    drafts: Drafts
    shown: list[Draft] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def plan_patch(root: Root, request: PlanPatch) -> PatchPlan:
    """Plan a patch."""
    plan = PatchPlan(Drafts(root, request.guards_git))
    try:
        operations = parse(request.patch)
    except PatchSyntaxError as error:
        plan.problems.append(
            problem(0, "", ProblemKind.MALFORMED, error.problem, patch_line=error.line)
        )
        return plan
    for index, operation in enumerate(operations):
        try:
            plan.problems += _operate(root, plan, index, operation)
        except (errors.FileRefused, AliasedPath) as refused:
            plan.problems.append(problem_of(refused, index, operation.path, operation.line))
    return plan


def _operate(root: Root, plan: PatchPlan, index: int, operation: Operation) -> list[Problem]:
    draft = plan.drafts.open(operation.path)
    match operation:
        case AddFile():
            if draft.content is not None:
                return [_exists(index, operation.path, operation.line)]
            draft.content = operation.content.encode()
        case DeleteFile():
            if draft.content is None:
                return [missing(root, index, operation.path, operation.line)]
            draft.content = None
        case UpdateFile():
            found = _update(root, plan, draft, index, operation)
            if found or operation.move_to:
                return found
        case _:
            assert_never(operation)
    if draft not in plan.shown:
        plan.shown.append(draft)
    return []


def _update(
    root: Root, plan: PatchPlan, draft: Draft, index: int, operation: UpdateFile
) -> list[Problem]:
    if draft.content is None:
        return [missing(root, index, operation.path, operation.line)]
    text = text_in(draft)
    if text is not None and text.count("\n") > LINES_MAX:
        message = f"it has over {LINES_MAX} lines, too many to be patched; use a command"
        kind = ProblemKind.MALFORMED
        return [problem(index, operation.path, kind, message, patch_line=operation.line)]
    if text is None and operation.chunks:
        message = "it is not text, so it cannot be patched; write it as a whole"
        kind = ProblemKind.BINARY
        return [problem(index, operation.path, kind, message, patch_line=operation.line)]
    if text is not None and operation.chunks:
        result = patched(text, operation.chunks)
        if result.bad:
            return [
                problem(
                    index,
                    operation.path,
                    ProblemKind.NO_MATCH,
                    bad.message,
                    hints=bad.hints,
                    patch_line=bad.line,
                )
                for bad in result.bad
            ]
        put_text(draft, result.text)
    return _move(plan, draft, index, operation) if operation.move_to else []


def _move(plan: PatchPlan, draft: Draft, index: int, operation: UpdateFile) -> list[Problem]:
    target = plan.drafts.open(operation.move_to)
    if target is draft:
        return []
    if target.content is not None:
        return [_exists(index, operation.move_to, operation.line)]
    target.content, draft.content = draft.content, None
    target.mode = draft.mode if draft.before is None else draft.before.mode
    target.moved_from = draft.shown
    target.compared = None if draft.before is None else draft.before.content
    plan.shown.append(target)
    return []


def _exists(index: int, path: str, line: int) -> Problem:
    message = f"{path!r} exists already; update it, or choose another path"
    return problem(index, path, ProblemKind.EXISTS, message, patch_line=line)
