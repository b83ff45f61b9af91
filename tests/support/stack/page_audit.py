"""What axe finds wrong with a page for people who do not see it, or use only the keyboard."""

import json

from support.net.browser import Page
from support.source.modules import ROOT

AXE = ROOT / "services" / "gateway" / "web" / "page" / "node_modules" / "axe-core" / "axe.min.js"
AUDIT = """
    axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})
        .then(({violations}) => JSON.stringify(violations.map(({id, nodes}) =>
            [id, ...nodes.map((node) => node.html.slice(0, 200))])))
"""


async def problems_of(page: Page) -> list[list[str]]:
    """Return the problems of what is shown, each with the elements that have it."""
    await page.run(f"{AXE.read_text()};0")
    found: list[list[str]] = json.loads(await page.run(AUDIT))
    return found
