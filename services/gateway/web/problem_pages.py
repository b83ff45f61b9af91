"""The HTML pages that the `type` of a problem links to."""

import re
from collections.abc import Mapping
from html import escape

from gateway.http.problems.reasons import (
    CHAT_REASONS,
    IDENTITY_REASONS,
    REQUEST_REASONS,
    SERVER_REASONS,
    SIGN_IN_REASONS,
    ReasonText,
)
from gateway.http.problems.tool_reasons import MCP_REASONS, WORKSPACE_REASONS

SECTIONS: Mapping[str, Mapping[str, ReasonText]] = {
    "Requests": REQUEST_REASONS,
    "Sign-in": SIGN_IN_REASONS,
    "Users, groups and tokens": IDENTITY_REASONS,
    "Chats": CHAT_REASONS,
    "Workspaces": WORKSPACE_REASONS,
    "MCP servers": MCP_REASONS,
    "Servers": SERVER_REASONS,
}
PROBLEM_REASONS: Mapping[str, ReasonText] = {
    code: kind for section in SECTIONS.values() for code, kind in section.items()
}
#: The codes in `errors` of an INVALID_REQUEST.
FIELD_CODES: Mapping[str, str] = {
    "MISSING_FIELD": "a required field is not there",
    "UNKNOWN_FIELD": "there is no field of this name",
    "WRONG_TYPE": "the value is of another JSON type than it has to be",
    "NOT_A_CHOICE": "the value is none of the choices, which the detail lists",
    "NOT_IN_RANGE": "the number is too small or too large",
    "TOO_SHORT": "a text, a list or an object has too few characters, items or members",
    "TOO_LONG": "a text, a list or an object has too many characters, items or members",
    "WRONG_FORMAT": "the text is not written in the way that the detail describes",
    "NUL": "the text holds a NUL character",
    "EMPTY_PATCH": "the patch names no field",
    "UNKNOWN_PARAMETER": "there is no query parameter of this name",
    "REPEATED": "the query parameter is given more than once",
    "INVALID": "the value cannot be accepted for the reason in the detail",
}


def index_body() -> str:
    """Return the list of all problem codes as HTML."""
    return "".join(
        f"<h2>{escape(title)}</h2><ul>{''.join(map(_row, section))}</ul>"
        for title, section in SECTIONS.items()
    )


def problem_body(code: str) -> str:
    """Return the description of one problem code as HTML."""
    kind = PROBLEM_REASONS[code]
    body = f"<p>{_html(kind.means)}</p><h2>What to do</h2><p>{_html(kind.remedy)}</p>"
    if code == "INVALID_REQUEST":
        rows = "".join(
            f"<li><code>{each}</code>: {escape(text)}</li>" for each, text in FIELD_CODES.items()
        )
        body += f"<h2>Codes in <code>errors</code></h2><ul>{rows}</ul>"
    return f'{body}<p><a href="/problems">All problems</a></p>'


def _html(text: str) -> str:
    """Convert a text to HTML, with backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _row(code: str) -> str:
    means = _html(PROBLEM_REASONS[code].means)
    return f'<li><a href="/problems/{code}"><code>{code}</code></a>: {means}</li>'
