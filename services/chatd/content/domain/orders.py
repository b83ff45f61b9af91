"""Orders: what an agent was started with beside its task, and the check of its report."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

PROBLEMS_MAX: Final = 10
PROBLEM_CHARACTERS_MAX: Final = 300
REPORT_CHARACTERS_MAX: Final = 200_000
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
#: Keywords with which a short schema could take very long to check.
UNSUPPORTED: Final = frozenset(
    {
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "pattern",
        "patternProperties",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_NAMES: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})


class AgentOrders(msgspec.Struct, frozen=True, omit_defaults=True):
    """The orders of an agent.

    Attributes:
        type_name: The type of the workspace that it was started with; empty for none.
        text: What the file of that type says to it.
        tool_names: The only tools that it may use; None for all.
        report_schema_json: The JSON schema of its report; empty for a free text.
    """

    type_name: str = ""
    text: str = ""
    tool_names: tuple[str, ...] | None = None
    report_schema_json: str = ""

    def may_use(self, tool_name: str) -> bool:
        """Return whether the agent may use a tool."""
        return self.tool_names is None or tool_name in self.tool_names


NO_ORDERS: Final = AgentOrders()


class CheckedReport(msgspec.Struct, frozen=True):
    """A report compared with its schema.

    Attributes:
        value: The report as JSON, if it is valid.
        problems: What is wrong with it; empty if it is valid.
    """

    value: Any = None
    problems: tuple[str, ...] = ()


def unsupported_keywords(schema: Any) -> Iterator[str]:
    """Yield the keywords of a JSON schema that a report cannot be checked with."""
    if isinstance(schema, list):
        for each in schema:
            yield from unsupported_keywords(each)
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in UNSUPPORTED or (keyword == "$schema" and value != DIALECT):
            yield keyword
        elif keyword in _NAMES and isinstance(value, dict):
            for each in value.values():
                yield from unsupported_keywords(each)
        elif keyword not in _DATA:
            yield from unsupported_keywords(value)


def checked_report(text: str, schema_json: str) -> CheckedReport:
    """Return the report that the last answer of an agent contains, compared with its schema."""
    # Imported lazily, because it is slow and most processes never need it.
    from jsonschema import Draft202012Validator

    if len(text) > REPORT_CHARACTERS_MAX:
        return CheckedReport(problems=(f"it has over {REPORT_CHARACTERS_MAX} characters",))
    try:
        value = json.loads(_without_fence(text))
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # It must be storable.
        errors = Draft202012Validator(json.loads(schema_json)).iter_errors(value)
        problems = tuple(
            f"{error.json_path}: {error.message}"[:PROBLEM_CHARACTERS_MAX]
            for error in islice(errors, PROBLEMS_MAX)
        )
    except ValueError as error:
        return CheckedReport(problems=(f"it is not JSON: {error}"[:PROBLEM_CHARACTERS_MAX],))
    except RecursionError:
        return CheckedReport(problems=("it is nested too deeply",))
    except (ArithmeticError, AttributeError, TypeError) as error:
        # Numbers and schemas that the validator itself cannot work with.
        return CheckedReport(problems=(f"it cannot be checked ({type(error).__name__})",))
    return CheckedReport(problems=problems) if problems else CheckedReport(value)


def _without_fence(text: str) -> str:
    """Return the content of a text that is one block of code in Markdown, or the text."""
    plain = text.strip()
    first, _, rest = plain.partition("\n")
    is_fenced = first in ("```", "```json") and rest.endswith("```")
    return rest.removesuffix("```") if is_fenced else plain
