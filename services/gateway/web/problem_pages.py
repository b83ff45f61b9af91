"""The pages that the `type` of a problem leads to, and the kinds that they are about."""

import re
from collections.abc import Mapping
from html import escape

from gateway.http.problems.reasons import (
    OF_CHATS,
    OF_IDENTITY,
    OF_REQUESTS,
    OF_SERVERS,
    OF_SIGN_IN,
    Kind,
)
from gateway.http.problems.tool_reasons import OF_MCP, OF_WORKSPACES

SECTIONS: Mapping[str, Mapping[str, Kind]] = {
    "Requests": OF_REQUESTS,
    "Sign-in": OF_SIGN_IN,
    "Users, groups and tokens": OF_IDENTITY,
    "Chats": OF_CHATS,
    "Workspaces": OF_WORKSPACES,
    "MCP servers": OF_MCP,
    "Servers": OF_SERVERS,
}
PROBLEM_KINDS: Mapping[str, Kind] = {
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
    """Return the list of all kinds as HTML."""
    return "".join(
        f"<h2>{escape(title)}</h2><ul>{''.join(map(_row, section))}</ul>"
        for title, section in SECTIONS.items()
    )


def problem_body(code: str) -> str:
    """Return what one kind means as HTML."""
    kind = PROBLEM_KINDS[code]
    body = f"<p>{_html(kind.means)}</p><h2>What to do</h2><p>{_html(kind.remedy)}</p>"
    if code == "INVALID_REQUEST":
        rows = "".join(
            f"<li><code>{each}</code>: {escape(text)}</li>" for each, text in FIELD_CODES.items()
        )
        body += f"<h2>Codes in <code>errors</code></h2><ul>{rows}</ul>"
    return f'{body}<p><a href="/problems">All problems</a></p>'


def _html(text: str) -> str:
    """Return a text as HTML, what is between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _row(code: str) -> str:
    means = _html(PROBLEM_KINDS[code].means)
    return f'<li><a href="/problems/{code}"><code>{code}</code></a>: {means}</li>'
