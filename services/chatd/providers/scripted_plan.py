"""The planning part of the scripted demo: one question, a plan, and a file once it is accepted."""

import json
import re
from collections.abc import Iterable
from typing import Any

from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult

QUESTION_TOOL = "ask_user_question"
PLAN_TOOL = "propose_plan"
WRITE_TOOL = "write_file"
FILES = ("NOTES.md", "hello.txt")
FILE_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


def is_planning(tool_names: Iterable[str], results: list[ToolResult]) -> bool:
    """Return whether a turn plans, or carries out what it planned."""
    return PLAN_TOOL in tool_names or any(each.tool_name == PLAN_TOOL for each in results)


def planned_call(said: str, results: list[ToolResult]) -> ToolCall | None:
    """Return the next call of a turn that plans; None if there is none left."""
    newest = results[-1] if results else None
    call_id = f"call_{len(results)}"
    if newest is None:
        return ToolCall(call_id, QUESTION_TOOL, json.dumps(_question()))
    if newest.tool_name == QUESTION_TOOL:
        return ToolCall(call_id, PLAN_TOOL, json.dumps(_plan(said, _file_of(results))))
    if newest.tool_name != PLAN_TOOL or newest.outcome is not ToolOutcome.DONE:
        return None
    answer = json.loads(newest.result_json)
    proposed = _plan(said, _file_of(results), answer.get("remark", ""))
    if not answer.get("accepted"):
        return ToolCall(call_id, PLAN_TOOL, json.dumps(proposed))
    written = {"path": _file_of(results), "content": answer.get("plan") or proposed["plan"]}
    return ToolCall(call_id, WRITE_TOOL, json.dumps(written))


def _question() -> dict[str, Any]:
    options = [{"label": name} for name in FILES]
    asked = {"header": "File", "question": "Which file should I write?", "options": options}
    return {"questions": [asked]}


def _plan(said: str, file: str, remark: str = "") -> dict[str, str]:
    remarked = f"\nAs you remarked: {remark}\n" if remark else ""
    plan = f"# Write {file}\n\n1. Write what was asked for into {file}: {said}\n{remarked}"
    return {"title": f"Write {file}", "plan": plan}


def _file_of(results: list[ToolResult]) -> str:
    """Return the name of the file that the person chose or wrote."""
    answered = [each for each in results if each.tool_name == QUESTION_TOOL]
    answer = json.loads(answered[-1].result_json) if answered else {}
    first: dict[str, Any] = next(iter(answer.get("answers") or ()), {})
    told = " ".join((*first.get("selected", ()), first.get("text", ""), answer.get("text", "")))
    found = FILE_NAME.search(told)
    return found[0] if found is not None else FILES[0]
