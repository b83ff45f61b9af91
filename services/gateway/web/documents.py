"""HTML documents of the pages without scripts: one style, nothing from elsewhere."""

import base64
import hashlib
from collections.abc import Mapping
from html import escape
from http import HTTPStatus
from typing import Final

from starlette.responses import HTMLResponse

#: The colours are those of the web page, in `page/src/ui/styles/tokens.css`.
STYLE: Final = (
    ":root{color-scheme:light dark;--ground:#f6f4ee;--card:#fffefb;--line:#dfdacd;--ink:#23221e;"
    "--soft:#4c4a43;--accent:#2a6454;--on-accent:#fff;--bad:#a3322a;--bad-soft:#f9e3de}"
    "@media(prefers-color-scheme:dark){:root{--ground:#1b1a17;--card:#24231f;--line:#3d3a33;"
    "--ink:#eceae3;--soft:#bdb8ab;--accent:#8fcab6;--on-accent:#10211b;--bad:#f2a99f;"
    "--bad-soft:#43231f}}"
    "body{margin:0;background:var(--ground);color:var(--ink);"
    "font:16px/1.5 Inter,ui-sans-serif,system-ui,sans-serif}"
    "header{padding:1rem 1.25rem;font-weight:650}"
    "header a{color:inherit;text-decoration:none}"
    "main{box-sizing:border-box;max-width:26rem;margin:4vh auto;padding:1.5rem 1.75rem;"
    "background:var(--card);border:1px solid var(--line);border-radius:16px;"
    "overflow-wrap:anywhere}"
    "main.is-wide{max-width:72rem;margin:0 auto 2rem}"
    "h1{margin:0 0 1rem;font:500 1.6rem/1.2 Newsreader,ui-serif,Georgia,serif}"
    "a{color:var(--accent)}"
    "[role=alert]{padding:.6rem .8rem;border-radius:9px;color:var(--bad);"
    "background:var(--bad-soft)}"
    "label{display:block;margin:.8rem 0;color:var(--soft)}"
    "input:not([type=hidden]){display:block;box-sizing:border-box;width:100%;margin-top:.25rem;"
    "padding:.55rem .7rem;font:inherit;color:var(--ink);background:var(--ground);"
    "border:1px solid var(--line);border-radius:9px}"
    "button{padding:.55rem 1rem;font:inherit;font-weight:600;color:var(--on-accent);"
    "background:var(--accent);border:0;border-radius:9px;cursor:pointer}"
    ":focus-visible{outline:2px solid var(--accent);outline-offset:2px}"
    "table{border-collapse:collapse;font-size:.85rem}"
    "th,td{padding:.35rem .6rem;text-align:left;vertical-align:top;"
    "border-bottom:1px solid var(--line)}"
    "@media(max-width:30rem){main{margin:0;border:0;border-radius:0}}"
)
STYLE_SOURCE: Final = (
    f"'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
)
POLICY: Final = (
    f"default-src 'none'; style-src {STYLE_SOURCE}; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


def document(title: str, body: str, *, is_wide: bool = False, attributes: str = "") -> str:
    """Return a whole HTML document; `attributes` are those of its body, as HTML."""
    kind = ' class="is-wide"' if is_wide else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body{attributes}>"
        f'<header><a href="/">Parley</a></header><main{kind}><h1>{escape(title)}</h1>{body}</main>'
        "</body></html>"
    )


def document_response(
    title: str,
    body: str,
    *,
    is_wide: bool = False,
    status: int = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """Return the response with a document, whose policy allows its style alone."""
    policy = {"content-security-policy": POLICY, **(headers or {})}
    return HTMLResponse(document(title, body, is_wide=is_wide), status_code=status, headers=policy)
