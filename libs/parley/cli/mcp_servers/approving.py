"""`parley mcp approve`: what changed in definitions that wait for approval."""

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import click

from parley.cli.errors import CliError
from parley.cli.text import sanitized

CONTEXT_LINES: Final = 2
INDENT: Final = "    "
SAME: Final = "  Its description and arguments are the same; its hints or its results changed."
COLORS: Final = {"-": "red", "+": "green"}


def waiting_tools(tools: Iterable[Any], names: Sequence[str]) -> list[Any]:
    """Return the tools whose definitions wait, those with these names or all.

    Raises:
        CliError: None of them waits, or one that is named does not.
    """
    waiting = {tool["original_name"]: tool for tool in tools if tool["is_quarantined"]}
    missing = [name for name in names if name not in waiting]
    if missing or not waiting:
        named = ", ".join(missing) or "none of these tools"
        verb = "are" if len(missing) > 1 else "is"
        raise CliError(f"{named} {verb} {'not ' if missing else ''}quarantined")
    return [waiting[name] for name in dict.fromkeys(names)] if names else list(waiting.values())


def print_change(tool: Any) -> None:
    """Print the definition of a tool that waits, as the difference to the approved one."""
    click.echo(sanitized(tool["original_name"]))
    for line in list(change_lines(tool)) or [SAME]:
        is_difference = line.startswith(INDENT)
        color = COLORS.get(line[len(INDENT) :][:1]) if is_difference else None
        click.secho(sanitized(line), fg=color)


def change_lines(tool: Any) -> Iterator[str]:
    """Yield the lines of what changed: description first, then the schema of the arguments."""
    before, after = tool["approved_description"] or "", tool["description"]
    yield from _difference("description", before.splitlines(), after.splitlines())
    old, new = tool["approved_input_schema"], tool["input_schema"]
    yield from _difference("arguments", _json_lines(old), _json_lines(new))


def _difference(what: str, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    found = list(difflib.unified_diff(before, after, n=CONTEXT_LINES, lineterm=""))
    if not found:
        return
    yield f"  {what}:"
    # The first two lines name files.
    for line in found[2:]:
        yield f"{INDENT}{line}"


def _json_lines(schema: object) -> list[str]:
    """Return a schema as lines, independent of the order of its keys; none for no schema."""
    if not schema:
        return []
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False).splitlines()
