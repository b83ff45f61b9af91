"""Light, dark, or as the system has it."""

import pytest

from support.net.browser import Page
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

INK = "getComputedStyle(document.body).backgroundColor"


async def themed(page: Page, theme: str) -> str:
    """Wait until the page has a theme, and return its ground."""
    await page.until(f"document.documentElement.dataset.theme === '{theme}'")
    ground: str = await page.run(INK)
    return ground


async def test_colours_follow_the_system_unless_one_of_both_is_chosen(
    stack: LocalStack, page: Page
) -> None:
    await page.prefer(prefers_color_scheme="light")
    await page.visit(f"http://{stack.http}/settings/display")
    await page.until(
        "document.querySelector('[name=theme]:checked')?.parentElement.innerText"
        " === 'As the system'"
    )
    light = await themed(page, "light")
    await page.prefer(prefers_color_scheme="dark")
    dark = await themed(page, "dark")
    await page.click("label", "Light")
    chosen = await themed(page, "light")
    await page.visit(f"http://{stack.http}/settings/display")
    kept = await themed(page, "light")
    await page.click("label", "As the system")
    again = await themed(page, "dark")

    assert light != dark
    assert (chosen, kept, again) == (light, light, dark)
