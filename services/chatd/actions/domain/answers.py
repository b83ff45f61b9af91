"""Answers of people: what each kind of action accepts, and the result that the model reads."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatd.actions.domain.action import StoredAction
from chatd.actions.domain.forms import form_faults
from chatd.approvals.domain.judgement import arguments_digest
from chatd.chats.domain.commands import Supplied
from chatd.content.domain.parts import ToolOutcome, ToolResult
from chatd.content.domain.tools import SUSPENDED, InputAction, PendingKind
from chatd.primitives.domain.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class AnswerToQuestion:
    """The chosen options and own words of one answer."""

    selected: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What a person sent.

    Attributes:
        is_accepted: The decision about a plan or a call; None if there is none.
        plan: The plan as the person edited it; empty for as it was proposed.
        arguments_digest: The digest of the call that the person saw; empty for no check.
        is_remembered: Whether an approval holds for the same call of the chat from now on.
        content_json: The content of a form that a running call asks for; empty for none.
    """

    is_accepted: bool | None = None
    remark: str = ""
    answers: tuple[AnswerToQuestion, ...] = ()
    plan: str = ""
    is_remembered: bool = False
    arguments_digest: str = ""
    content_json: str = ""


def checked(action: StoredAction, given: GivenAnswer) -> dict[str, Any]:
    """Return what was answered as it is stored.

    Raises:
        InvalidRequest: The answer does not fit the action; its field and what to send instead.
    """
    if given.arguments_digest not in ("", arguments_digest(action.call)):
        raise InvalidRequest("arguments_digest", "is not of this call; read the action again")
    is_approval = action.kind is PendingKind.APPROVAL and given.is_accepted is True
    if given.is_remembered and not is_approval:
        raise InvalidRequest("remember", "is only for a call that is accepted")
    if given.content_json and action.kind is not PendingKind.ELICITATION:
        raise InvalidRequest("content", "is only for what a running call asks")
    if action.kind is PendingKind.QUESTION:
        return _checked_answers(json.loads(action.args_json), given)
    if given.answers:
        raise InvalidRequest("answers", "is only for questions; send `decision`")
    if given.is_accepted is None:
        raise InvalidRequest("decision", "is missing; send accept or refuse")
    if given.plan and action.kind is not PendingKind.PLAN:
        raise InvalidRequest("plan", "is only for plans")
    if given.plan and not given.is_accepted:
        raise InvalidRequest("plan", "is only for a plan that is accepted; send `remark`")
    if given.plan and not given.plan.strip():
        raise InvalidRequest("plan", "is blank; leave it out to accept the plan as proposed")
    said: dict[str, Any] = {"accepted": given.is_accepted}
    if action.kind in SUSPENDED:
        if given.remark:
            raise InvalidRequest("remark", "is not passed on to the call that asks")
        return said | _checked_content(json.loads(action.args_json), given)
    if given.remark:
        said["remark"] = given.remark
    if given.plan:
        said["plan"] = given.plan
    if given.is_remembered:
        said["remember"] = True
    return said


def _checked_content(asked: Mapping[str, Any], given: GivenAnswer) -> dict[str, Any]:
    """Return the content of a form as it is stored; nothing if there is no form."""
    schema = asked.get("schema")
    if not given.is_accepted or schema is None:
        if given.content_json:
            needed = "a form that is accepted" if schema is not None else "a form; this has none"
            raise InvalidRequest("content", f"is only for {needed}")
        return {}
    try:
        content = json.loads(given.content_json or "{}")
    except (ValueError, RecursionError):
        raise InvalidRequest("content", "is no JSON") from None
    if not isinstance(content, dict):
        raise InvalidRequest("content", "is no JSON object")
    if faults := form_faults(schema, content):
        (field, problem), *others = faults
        raise InvalidRequest(field, problem, *others)
    return {"content": content}


def supplied_by(said: Mapping[str, Any]) -> Supplied:
    """Return an answer as it is passed to a running call."""
    if not said["accepted"]:
        return Supplied(InputAction.DECLINE)
    content = said.get("content")
    told = "" if content is None else json.dumps(content, ensure_ascii=False)
    return Supplied(InputAction.ACCEPT, told)


def _checked_answers(asked: Mapping[str, Any], given: GivenAnswer) -> dict[str, Any]:
    if given.is_accepted is not None:
        raise InvalidRequest("decision", "is not for questions; send `answers`")
    if given.plan:
        raise InvalidRequest("plan", "is only for plans")
    questions = asked["questions"]
    if not given.answers:
        if not given.remark.strip():
            raise InvalidRequest("answers", f"is missing; send one for each of {len(questions)}")
        return {"text": given.remark}
    if len(given.answers) != len(questions):
        raise InvalidRequest("answers", f"must hold one for each of the {len(questions)} questions")
    answers = [
        _checked_answer(f"answers[{index}]", question, answer)
        for index, (question, answer) in enumerate(zip(questions, given.answers, strict=True))
    ]
    return {"answers": answers, **({"remark": given.remark} if given.remark else {})}


def _checked_answer(
    field: str, question: Mapping[str, Any], answer: AnswerToQuestion
) -> dict[str, Any]:
    labels = [option["label"] for option in question["options"]]
    for label in answer.selected:
        if label not in labels:
            raise InvalidRequest(f"{field}.selected", f"is none of the options: {_listed(labels)}")
    if len(set(answer.selected)) < len(answer.selected):
        raise InvalidRequest(f"{field}.selected", "names an option twice")
    if len(answer.selected) > 1 and not question.get("multiple", False):
        raise InvalidRequest(f"{field}.selected", "names several options; choose one")
    if not answer.selected and not answer.text.strip():
        raise InvalidRequest(field, "is empty; choose an option or write an answer")
    told: dict[str, Any] = {"question": question["question"], "selected": list(answer.selected)}
    return {**told, **({"text": answer.text} if answer.text else {})}


def result_of(action: StoredAction, said: Mapping[str, Any]) -> ToolResult:
    """Return what the model reads of an answer."""
    told: dict[str, Any] = {"ok": True, **said}
    if action.kind is PendingKind.PLAN and said["accepted"]:
        told["next_step"] = "Planning is over: carry out the plan now."
    elif action.kind in (PendingKind.APPROVAL, PendingKind.LOOP):
        told = {
            "ok": False,
            "error": "this did not run: the person refused it",
            "reason": "REFUSED",
            "hint": said.get("remark") or "Do not try the same again; ask what to do instead.",
        }
    return _result(action, told)


def not_run(action: StoredAction, problem: str) -> ToolResult:
    """Return the result of an allowed call that cannot run any more."""
    hint = "Go on with the tools that are offered now."
    return _result(action, {"ok": False, "error": problem, "reason": "NOT_RUN", "hint": hint})


def _result(action: StoredAction, told: Mapping[str, Any]) -> ToolResult:
    return ToolResult(
        action.tool_call_id,
        action.tool_name,
        json.dumps(told, ensure_ascii=False),
        ToolOutcome.DONE if told["ok"] else ToolOutcome.FAILED,
        action.mcp_server_id,
    )


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(label[:64] for label in labels)
