"""Tools whose calls a person answers: plans and questions, and what each kind may ask."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.tools import (
    ASK_USER_QUESTION,
    PROPOSE_PLAN,
    SUSPENDED,
    Executor,
    InputRequired,
    PendingKind,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext

PLAN_BYTES_MAX = 64 * 1024
TITLE_CHARACTERS_MAX = 200
QUESTIONS_MAX = 4
OPTIONS_MIN, OPTIONS_MAX = 2, 4
HEADER_CHARACTERS_MAX = 40
QUESTION_CHARACTERS_MAX = 1000
OPTION_CHARACTERS_MAX = 500
#: Of what a running call asks.
REQUEST_ID_CHARACTERS_MAX = 128
MESSAGE_CHARACTERS_MAX = 4096
SCHEMA_BYTES_MAX = 64 * 1024
URL_CHARACTERS_MAX = 2048

_PLAN_SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "The plan in a few words."},
        "plan": {"type": "string", "description": "The whole plan, in Markdown."},
    },
    "required": ["plan"],
    "additionalProperties": False,
}
_QUESTION_SCHEMA = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "minItems": 1,
            "maxItems": QUESTIONS_MAX,
            "items": {
                "type": "object",
                "properties": {
                    "header": {"type": "string", "description": "The subject, one to three words."},
                    "question": {"type": "string", "description": "The question itself."},
                    "options": {
                        "type": "array",
                        "minItems": OPTIONS_MIN,
                        "maxItems": OPTIONS_MAX,
                        "items": {
                            "type": "object",
                            "properties": {
                                "label": {"type": "string"},
                                "description": {"type": "string"},
                            },
                            "required": ["label"],
                            "additionalProperties": False,
                        },
                    },
                    "multiple": {
                        "type": "boolean",
                        "description": "Whether several options may be chosen.",
                    },
                },
                "required": ["question", "options"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["questions"],
    "additionalProperties": False,
}
_SPECS: Final = (
    ToolSpec(
        PROPOSE_PLAN,
        "Propose the finished plan to the person and wait. If it is accepted, planning is over and "
        "you carry it out; if it is refused, the remark says what to change. The person may edit "
        "the plan: follow the text that comes back. Call it alone.",
        json.dumps(_PLAN_SCHEMA),
        Executor.PERSON,
        is_exclusive=True,
        asks=PendingKind.PLAN,
    ),
    ToolSpec(
        ASK_USER_QUESTION,
        "Ask the person one to four questions that you cannot answer yourself, each with two to "
        "four options, and wait for the answers. The person can always answer in own words, so do "
        "not offer an option such as Other. Call it alone.",
        json.dumps(_QUESTION_SCHEMA),
        Executor.PERSON,
        is_exclusive=True,
        asks=PendingKind.QUESTION,
    ),
)


@dataclass(frozen=True, slots=True)
class ActionDeadlines:
    """How long each kind of action is waited for; None for ever."""

    client_s: float | None = 300.0
    question_s: float | None = None
    approval_s: float | None = 86_400.0

    def of(self, kind: PendingKind) -> float | None:
        """Return the deadline of a kind."""
        match kind:
            case PendingKind.QUESTION | PendingKind.PLAN:
                return self.question_s
            case PendingKind.AGENTS:
                return None
            case (
                PendingKind.APPROVAL
                | PendingKind.LOOP
                | PendingKind.LOGIN
                | PendingKind.ELICITATION
            ):
                return self.approval_s
            case PendingKind.CLIENT | PendingKind.DISPATCHED:
                return self.client_s

    def of_question(self, question: InputRequired) -> float | None:
        """Return the deadline of what a running call asks: its own, if that is shorter."""
        known = [each for each in (self.of(question.kind), question.expires_s) if each is not None]
        return min(known, default=None)


def question_problem(question: InputRequired) -> str | None:
    """Return why what a running call asks cannot be shown to a person; None if it can."""
    if question.kind not in SUSPENDED:
        return "asks for something that is not known"
    if not 1 <= len(question.request_id) <= REQUEST_ID_CHARACTERS_MAX:
        return "asks without an id"
    if not question.message.strip() or len(question.message) > MESSAGE_CHARACTERS_MAX:
        return f"asks with no text of 1 to {MESSAGE_CHARACTERS_MAX} characters"
    if question.schema_json and not _is_form(question.schema_json):
        return "asks with a form that is no JSON schema of an object"
    is_address = question.url.startswith(("https://", "http://"))
    if question.url and (not is_address or len(question.url) > URL_CHARACTERS_MAX):
        return "asks to open something that is no web address"
    if question.kind is PendingKind.LOGIN and not question.url:
        return "asks to sign in without an address"
    return None


def _is_form(schema_json: str) -> bool:
    """Return whether a text is the schema of a form: an object with named fields."""
    if len(schema_json.encode(errors="replace")) > SCHEMA_BYTES_MAX:
        return False
    try:
        schema = json.loads(schema_json)
    except (ValueError, RecursionError):
        return False
    return isinstance(schema, dict) and isinstance(schema.get("properties", {}), dict)


def asking_tools(context: TurnContext) -> tuple[ToolSpec, ...]:
    """Return the tools that ask a person: only while a root chat plans and somebody can answer."""
    is_asking = context.mode is ChatMode.PLAN and not context.is_child and context.is_attended
    return _SPECS if is_asking else ()


def asking_problem(kind: PendingKind | None, arguments: Mapping[str, object]) -> str | None:
    """Return why what is asked cannot be shown to a person; None if it can."""
    match kind:
        case PendingKind.PLAN:
            return _plan_problem(arguments)
        case PendingKind.QUESTION:
            return _questions_problem(arguments.get("questions"))
        case _:
            return None


def _plan_problem(arguments: Mapping[str, object]) -> str | None:
    plan, title = arguments.get("plan"), arguments.get("title", "")
    if not isinstance(plan, str) or not plan.strip():
        return "the plan is empty"
    if len(plan.encode(errors="replace")) > PLAN_BYTES_MAX:
        return f"the plan is larger than {PLAN_BYTES_MAX // 1024} KiB; shorten it"
    if not isinstance(title, str) or len(title) > TITLE_CHARACTERS_MAX:
        return f"the title is no text of at most {TITLE_CHARACTERS_MAX} characters"
    return None


def _questions_problem(questions: object) -> str | None:
    if not isinstance(questions, list) or not 1 <= len(questions) <= QUESTIONS_MAX:
        return f"questions must be a list of 1 to {QUESTIONS_MAX}"
    problems = (_question_problem(f"questions[{i}]", each) for i, each in enumerate(questions))
    return next((problem for problem in problems if problem is not None), None)


def _question_problem(place: str, question: object) -> str | None:
    if not isinstance(question, dict):
        return f"{place} is no object"
    header = question.get("header", "")
    if not isinstance(header, str) or len(header) > HEADER_CHARACTERS_MAX:
        return f"{place}.header is no text of at most {HEADER_CHARACTERS_MAX} characters"
    if problem := _text_problem(question.get("question"), QUESTION_CHARACTERS_MAX):
        return f"{place}.question {problem}"
    options = question.get("options")
    if not isinstance(options, list) or not OPTIONS_MIN <= len(options) <= OPTIONS_MAX:
        return f"{place}.options must be a list of {OPTIONS_MIN} to {OPTIONS_MAX}"
    labels = [each.get("label") if isinstance(each, dict) else None for each in options]
    for index, label in enumerate(labels):
        if problem := _text_problem(label, OPTION_CHARACTERS_MAX):
            return f"{place}.options[{index}].label {problem}"
    if len(set(map(str, labels))) < len(labels):
        return f"{place}.options has two with the same label"
    return None


def _text_problem(text: object, characters_max: int) -> str | None:
    if not isinstance(text, str) or not text.strip():
        return "is empty"
    return f"is longer than {characters_max} characters" if len(text) > characters_max else None
