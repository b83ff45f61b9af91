"""Arguments of tools: their JSON schemas, durations, and errors that name the argument."""

import difflib
import json
import re
from typing import Annotated, Any, Final, TypeVar

import msgspec

from chatd.content.domain.arguments import Arguments, parsed

INTENT_CHARACTERS_MAX: Final = 200
_WHERE: Final = re.compile(r"(?P<problem>.*?)(?: - at `\$\.?(?P<place>[^`]*)`)?", re.DOTALL)
_STEP: Final = re.compile(r"(?P<name>[^.\[\]]+)|\[[^\]]*\]")
_NAMED: Final = re.compile(r"`(\w+)`$")
_TYPES: Final = {
    "`str`": "a text",
    "`int`": "a whole number",
    "`float`": "a number",
    "`bool`": "true or false",
    "`array`": "a list",
    "`object`": "an object",
    "`null`": "null",
}

A = TypeVar("A", bound="Input")

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PIECE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)")
_DURATION: Final = re.compile(rf"(?:{_DURATION_PIECE.pattern})+")


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every tool takes beside its own arguments."""

    model_intent: Annotated[
        str,
        msgspec.Meta(
            max_length=INTENT_CHARACTERS_MAX,
            description="What this call is for, in a few words for the person who watches, such as "
            '"Running the unit tests". Changes nothing.',
        ),
    ] = ""


class BadArguments(Exception):
    """Invalid arguments of a tool call.

    Attributes:
        problem: What is wrong, naming the argument.
        hint: How to correct it.
    """

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(f"{problem}; {hint}")
        self.problem = problem
        self.hint = hint


def read(takes: type[A], args_json: str) -> A:
    """Return the arguments of a call.

    Raises:
        BadArguments: they do not match the tool's schema.
    """
    try:
        given = parsed(args_json)
    except ValueError as error:
        raise BadArguments(str(error), "send one JSON object with each argument once") from None
    _refuse_names(takes, given)
    required = {field.name for field in msgspec.structs.fields(takes) if field.required}
    told = {name: value for name, value in given.items() if value is not None or name in required}
    try:
        return msgspec.convert(told, takes)
    except msgspec.ValidationError as error:
        raise _typed(str(error), takes) from None


def schema_of(takes: type[Input]) -> str:
    """Return the JSON schema of a tool's arguments, without references."""
    whole = msgspec.json.schema(takes)
    schema = _resolved(whole, whole["$defs"])
    del schema["description"]
    # The tool's own arguments come first, the common one last.
    schema["properties"]["model_intent"] = schema["properties"].pop("model_intent")
    return json.dumps(schema)


def _refuse_names(takes: type[Input], given: Arguments) -> None:
    known = [field.encode_name for field in msgspec.structs.fields(takes)]
    if given.has_case_variants():
        raise BadArguments("two arguments differ only in case", "give each argument once")
    for name in given:
        if name in known:
            continue
        raise BadArguments(f"there is no argument {name[:64]!r}", _meant(name, known))


def _typed(message: str, takes: type[Input]) -> BadArguments:
    found = _WHERE.fullmatch(message)
    problem, place = (message, "") if found is None else (found["problem"], found["place"] or "")
    hint = _hint_at(place, problem, takes)
    for name, words in _TYPES.items():
        problem = problem.replace(name, words)
    problem = problem.replace("Object", "the object" if place else "the call", 1)
    told = f"{place}: {problem[:1].lower()}{problem[1:]}" if place else problem
    return BadArguments(told, hint)


def _hint_at(place: str, problem: str, takes: type[Input]) -> str:
    """Return what the schema expects at the position of an error."""
    schema = node = json.loads(schema_of(takes))
    last = ""
    for step in _STEP.finditer(place):
        last = step["name"] or last
        inside = node.get("properties", {}).get(step["name"], {}) if step["name"] else {}
        node = inside or node.get("items") or node.get("additionalProperties") or {}
    inner = node.get("properties", {})
    named = _NAMED.search(problem)
    if named is not None and named[1] in inner:
        return f"give {named[1]}: {inner[named[1]]['description']}"
    if inner:
        return _meant(named[1] if named else "", list(inner))
    if "description" not in node:
        return f"it takes {_listed(list(schema['properties']))}"
    choices = f" One of {_listed(node['enum'])}." if "enum" in node else ""
    return f"{last}: {node['description']}{choices}"


def _meant(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.casefold(), known, n=1)
    return f"did you mean {near[0]}?" if near else f"it takes {_listed(known)}"


def _listed(names: list[str]) -> str:
    return ", ".join(names)


def _resolved(schema: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with resolved references, without fields that are useless to a model."""
    if "$ref" in schema:
        target = known[schema["$ref"].rpartition("/")[2]]
        beside = {name: value for name, value in schema.items() if name not in ("$ref", "$defs")}
        return _resolved({**target, **beside}, known)
    made: dict[str, Any] = {}
    for name, value in schema.items():
        match name, value:
            case "title" | "$defs", str() | dict():
                continue
            case "default", "" | None | [] | {}:
                continue
            case "anyOf", [dict(first), {"type": "null"}]:
                made |= _resolved(first, known)
            case "properties", dict():
                made[name] = {key: _resolved(each, known) for key, each in value.items()}
            case _, dict():
                made[name] = _resolved(value, known)
            case _:
                made[name] = value
    return made


def seconds_of(text: str, argument: str) -> float:
    """Return a duration in seconds.

    Raises:
        BadArguments: it is not a duration.
    """
    duration_text = text.strip()
    if not _DURATION.fullmatch(duration_text):
        problem = f"{argument}: {text[:32]!r} is not a duration"
        raise BadArguments(problem, 'write a number with its unit, such as "30s", "2m" or "500ms"')
    return sum(
        float(number) * _UNITS_S[unit] for number, unit in _DURATION_PIECE.findall(duration_text)
    )


def duration_text(seconds: float) -> str:
    """Format a duration."""
    return f"{seconds:g}s"
