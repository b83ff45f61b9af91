"""The HTML pages that the `type` of a problem links to."""

import re
from collections import Counter
from collections.abc import Mapping
from html import escape

from parley.api.chat.v1.error_reason_pb2 import ErrorReason as ChatReason
from parley.api.error.v1.http_error_reason_pb2 import HttpErrorReason
from parley.api.error.v1.rpc_error_reason_pb2 import RpcErrorReason
from parley.api.identity.v1.error_reason_pb2 import ErrorReason as IdentityReason
from parley.api.mcp.v1.error_reason_pb2 import ErrorReason as McpReason
from parley.api.workspace.v1.error_reason_pb2 import ErrorReason as WorkspaceReason
from parley.contract.errors import ENUMS, ERROR_SPECS, FIELD_CODES, ErrorSpec, specs_of

_NAMES = Counter(spec.reason for reasons in ENUMS for spec in specs_of(reasons))
#: Title of a section -> its codes; those of several enums have a section of their own.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "General": tuple(name for name, enums in _NAMES.items() if enums > 1),
} | {
    title: tuple(spec.reason for spec in specs_of(reasons) if _NAMES[spec.reason] == 1)
    for title, reasons in {
        "HTTP requests": HttpErrorReason.DESCRIPTOR,
        "Users, groups and tokens": IdentityReason.DESCRIPTOR,
        "Chats": ChatReason.DESCRIPTOR,
        "Workspaces": WorkspaceReason.DESCRIPTOR,
        "MCP servers": McpReason.DESCRIPTOR,
        "Calls between services": RpcErrorReason.DESCRIPTOR,
    }.items()
}


def index_body() -> str:
    """Return the list of all problem codes as HTML."""
    return "".join(
        f"<h2>{escape(title)}</h2><ul>{''.join(map(_row, section))}</ul>"
        for title, section in SECTIONS.items()
    )


def problem_body(spec: ErrorSpec) -> str:
    """Return the description of one problem code as HTML."""
    body = f"<p>{_html(spec.meaning)}</p><h2>What to do</h2><p>{_html(spec.remedy)}</p>"
    if spec.command:
        body += f"<p>On the command line: <code>{escape(spec.command)}</code></p>"
    if spec.reason == "INVALID_REQUEST":
        rows = "".join(
            f"<li><code>{each}</code>: {escape(text)}</li>" for each, text in FIELD_CODES.items()
        )
        body += f"<h2>Codes in <code>errors</code></h2><ul>{rows}</ul>"
    return f'{body}<p><a href="/problems">All problems</a></p>'


def _html(text: str) -> str:
    """Convert a text to HTML, with backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _row(code: str) -> str:
    meaning = _html(ERROR_SPECS[code].meaning)
    return f'<li><a href="/problems/{code}"><code>{code}</code></a>: {meaning}</li>'
