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


async def problems_in_all_looks(page: Page) -> dict[str, list[list[str]]]:
    """Return the problems of what is shown, in light colours and, on a phone, in dark ones."""
    found = {}
    for name, width, height, colours in (
        ("light", 1280, 900, "light"),
        ("dark", 1280, 900, "dark"),
        ("phone", 360, 740, "dark"),
    ):
        await page.resize(width, height, mobile=name == "phone")
        await page.prefer(prefers_color_scheme=colours, prefers_reduced_motion="reduce")
        await page.until(f"document.documentElement.dataset.theme === '{colours}'")
        overflow = await page.run("document.documentElement.scrollWidth - innerWidth")
        found[name] = [*await problems_of(page), *([["overflow"]] if overflow > 0 else [])]
    await page.resize(1280, 900)
    await page.prefer(prefers_color_scheme="light", prefers_reduced_motion="no-preference")
    return {name: each for name, each in found.items() if each}
