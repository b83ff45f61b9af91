"""Results of tools as the scripted demo tells them: sentences, and output in code blocks."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from chatd.content.domain.parts import ToolOutcome, ToolResult
from chatd.content.domain.truncation import without_large_bytes

OUTPUT_CHARACTERS_MAX = 4000
FENCES = re.compile(r"`{3,}")
#: The fields of results that are texts to read, by the tools of workspaces.
TEXTS = ("output", "content", "diff", "text")
FACTS_MAX = 12


def report(results: Iterable[ToolResult]) -> str:
    """Return Markdown that says of each call what came back."""
    return "\n\n".join((*map(told, results), "That is all the demo does."))


def told(result: ToolResult) -> str:
    """Return Markdown that says what came back from one call."""
    found = _decoded(without_large_bytes(result.result_json))
    body = _text(found)
    if result.outcome is not ToolOutcome.DONE:
        problem = _problem(found)
        shown = f"\n\n{_block(body)}" if body else ""
        return f"`{result.tool_name}` failed{f': {problem}' if problem else '.'}{shown}"
    if not body and _is_empty(found):
        return f"`{result.tool_name}` is done."
    shown = _facts(_decoded(body) if body else found)
    return f"`{result.tool_name}` answered:\n\n{shown or _block(body or _indented(found))}"


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(found: Any) -> str:
    """Return the text of a result; empty if it has none, as when a command printed nothing."""
    if isinstance(found, str):
        return found
    if not isinstance(found, Mapping):
        return ""
    content = found.get("content")
    if isinstance(content, list):
        # Results of MCP servers are lists of parts.
        parts = (each.get("text", "") for each in content if isinstance(each, Mapping))
        return "\n\n".join(each for each in parts if isinstance(each, str) and each)
    entries = found.get("entries")
    if isinstance(entries, list) and all(isinstance(each, str) for each in entries):
        return "\n".join(entries)
    return next((found[name] for name in TEXTS if isinstance(found.get(name), str)), "")


def _problem(found: Any) -> str:
    """Return why a call failed, with what to do."""
    if not isinstance(found, Mapping):
        return ""
    words = (found.get("error"), found.get("hint"))
    return " ".join(each for each in words if isinstance(each, str) and each)


def _is_empty(found: Any) -> bool:
    """Return whether a result says no more than that the call succeeded."""
    if not isinstance(found, Mapping):
        return not found
    # A command that printed nothing has numbers and ids, which are in its card.
    return set(found) <= {"ok"} or any(found.get(name) == "" for name in TEXTS)


def _facts(found: Any) -> str:
    """Return plain values as a list; empty if there are none, or others beside them."""
    if not isinstance(found, Mapping):
        return ""
    values = {name: value for name, value in found.items() if name != "ok"}
    is_plain = all(isinstance(each, str | int | float) for each in values.values())
    if not is_plain or len(values) > FACTS_MAX:
        return ""
    return "\n".join(
        f"- {name.replace('_', ' ')}: {_value(value)}" for name, value in values.items()
    )


def _value(value: str | float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if value != "" and "`" not in str(value) else str(value)


def _indented(found: Any) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False)


def _block(text: str) -> str:
    """Return a code block that the text cannot end; a long one is cut."""
    kept = text[:OUTPUT_CHARACTERS_MAX].rstrip("\n")
    fence = "`" * max((len(each) + 1 for each in FENCES.findall(kept)), default=3)
    rest = "\n\nThe rest is in the card of the call." if len(text) > OUTPUT_CHARACTERS_MAX else ""
    return f"{fence}\n{kept}\n{fence}{rest}"
