"""HTML documents of the pages: no scripts, no styles, nothing from elsewhere."""

from html import escape


def document(title: str, body: str) -> str:
    """Return a whole HTML document."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title></head><body><h1>{escape(title)}</h1>{body}</body></html>"
    )
