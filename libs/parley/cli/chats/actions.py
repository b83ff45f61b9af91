"""Actions of chats, as commands list and print them: questions, plans, permissions."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from parley.cli.api.client import Api
from parley.cli.api.requests import listed
from parley.cli.chats.listing import chat_path, one_line

ACTIONS = "/api/v1/actions"
UNKNOWN_OUTCOMES = "/api/v1/unknown-outcomes"
CLIENT_TOOL = "client_tool"
#: Waits for agents end by themselves.
AGENTS = "agents"
Action = Mapping[str, Any]


def list_actions(api: Api) -> list[dict[str, Any]]:
    """Return what all chats of the caller wait for, the longest first."""
    return list(listed(api, ACTIONS))


def list_unknown_outcomes(api: Api) -> list[dict[str, Any]]:
    """Return the calls of which it is not known whether they ran, the newest first."""
    return list(api.call("GET", UNKNOWN_OUTCOMES, needs="items")["items"])


def outcome_row_of(outcome: Mapping[str, Any]) -> tuple[str, ...]:
    """Return such a call as a row: ids of chat and message, title, call, time."""
    return (
        str(outcome.get("chat_id")),
        str(outcome.get("message_id")),
        one_line(str(outcome.get("chat_title") or "")),
        one_line(_call_words(outcome)),
        _moment(outcome.get("ended_at")),
    )


def open_actions(chat: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a chat waits for; nothing if it goes on by itself, as after its agents."""
    waiting = chat.get("required_action") or {}
    return [each for each in waiting.get("actions") or [] if each.get("kind") != AGENTS]


def action_path(chat_id: str, action_id: str) -> str:
    """Return the path of an action, with the ids escaped."""
    return f"{chat_path(chat_id)}/actions/{quote(action_id, safe='')}"


def row_of(action: Action) -> tuple[str, ...]:
    """Return an action as a row: ids of chat and action, title, kind, what is asked, why, times."""
    return (
        str(action.get("chat_id")),
        str(action.get("id")),
        one_line(str(action.get("chat_title") or "")),
        str(action.get("kind")),
        one_line(summary_of(action)),
        one_line(str(action.get("reason") or "-")),
        _moment(action.get("asked_at")),
        _moment(action.get("deadline_at")),
    )


def summary_of(action: Action) -> str:
    """Return what is asked, in a few words."""
    match action.get("kind"):
        case "question":
            first, *others = questions_of(action)
            more = f" (and {len(others)} more)" if others else ""
            return f"{first.get('question')}{more}"
        case "plan":
            plan = _arguments(action)
            return str(plan.get("title") or next(iter(str(plan.get("plan")).splitlines()), ""))
        case "login" | "elicitation":
            return f"{action.get('tool_name')} asks: {_arguments(action).get('message')}"
        case _:
            return _call_words(action)


def action_lines(action: Action) -> Iterator[str]:
    """Yield the lines that show everything an action asks."""
    match action.get("kind"):
        case "question":
            for question in questions_of(action):
                yield from question_lines(question)
        case "plan":
            plan = _arguments(action)
            yield f"The plan: {plan.get('title') or ''}".rstrip()
            yield from (f"  {line}".rstrip() for line in str(plan.get("plan")).splitlines())
        case "login" | "elicitation":
            asked = _arguments(action)
            yield f"{action.get('tool_name')} asks: {asked.get('message')}"
            if asked.get("url"):
                yield f"  Open {asked['url']}"
            for name, field in form_of(action).items():
                yield f"  {name}: {field.get('description') or field.get('title') or ''}".rstrip()
        case _:
            yield f"May this run? {_call_words(action)}"
            if action.get("reason"):
                yield f"  because: {action['reason']}"


def questions_of(action: Action) -> list[dict[str, Any]]:
    """Return the questions of an action."""
    questions: list[dict[str, Any]] = _arguments(action).get("questions") or [{}]
    return questions


def form_of(action: Action) -> dict[str, dict[str, Any]]:
    """Return the fields of the form that a running call asks for, by name."""
    schema = _arguments(action).get("schema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    found = fields if isinstance(fields, dict) else {}
    return {name: field if isinstance(field, dict) else {} for name, field in found.items()}


def required_fields_of(action: Action) -> list[str]:
    """Return the fields of the form that have to be filled in."""
    schema = _arguments(action).get("schema")
    required = schema.get("required") if isinstance(schema, dict) else None
    return [str(name) for name in required] if isinstance(required, list) else []


def question_lines(question: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show one question and its numbered options."""
    header = f"{question['header']}: " if question.get("header") else ""
    several = " (several may be chosen)" if question.get("multiple") else ""
    yield f"{header}{question.get('question')}{several}"
    for number, option in enumerate(question.get("options") or (), start=1):
        described = f" - {option['description']}" if option.get("description") else ""
        yield f"  {number}. {option.get('label')}{described}"


def _arguments(action: Action) -> Mapping[str, Any]:
    found = action.get("args")
    return found if isinstance(found, dict) else {}


def _call_words(action: Action) -> str:
    arguments = _arguments(action)
    command = arguments.get("command")
    if isinstance(command, str) and len(arguments) == 1:
        return f"{action.get('tool_name')}: {command}"
    return f"{action.get('tool_name')} {json.dumps(arguments, ensure_ascii=False)}"


def _moment(value: object) -> str:
    return str(value)[:19].replace("T", " ") if value else "-"
