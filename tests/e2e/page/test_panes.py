"""Panes whose width is chosen, the manifest, and options that stay where they are."""

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_session import idle, sign_in, written

pytestmark = pytest.mark.slow

#: What moved inside of the composer since the page was loaded.
MOVED = """
    new Promise((done) => {
        let moved = 0;
        new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) {
                const inside = (each) => each.node?.parentElement?.closest('.composer');
                if (entry.sources.some(inside)) moved += entry.value;
            }
        }).observe({type: 'layout-shift', buffered: true});
        setTimeout(() => done(moved), 500);
    })
"""


async def width_of(page: Page, selector: str) -> float:
    width: float = await page.run(
        f"document.querySelector('{selector}').getBoundingClientRect().width"
    )
    return width


async def test_panes_are_made_wider_by_keys_and_pointer_and_stay_so(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1400, 800)
    await sign_in(page, stack, "pia")
    await written(page, "repeat after me: wide")
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)
    await page.click(".bar button", "Workspace of the chat")
    await page.find(".panel [role=tab]", "Files")
    side = await width_of(page, ".side")
    await page.run("document.querySelector('.side > .splitter').focus()")
    await page.press("ArrowRight")
    await page.press("ArrowRight")
    await page.until(f"document.querySelector('.side').getBoundingClientRect().width > {side + 20}")
    panel = await width_of(page, ".panel")
    await page.run("""
        (() => {
            const edge = document.querySelector('.panel > .splitter');
            edge.setPointerCapture = () => {};
            const {left} = edge.getBoundingClientRect();
            const at = (type, clientX) => edge.dispatchEvent(
                new PointerEvent(type, {clientX, clientY: 300, pointerId: 1, bubbles: true}));
            at('pointerdown', left);
            at('pointermove', left - 60);
            at('pointerup', left - 60);
        })()
    """)
    await page.until(
        f"document.querySelector('.panel').getBoundingClientRect().width > {panel + 40}"
    )
    await page.visit(await page.run("location.href"))
    await page.find(".panel [role=tab]", "Files")

    assert await width_of(page, ".side") == pytest.approx(side + 32, abs=2)
    assert await width_of(page, ".panel") == pytest.approx(panel + 60, abs=2)


async def test_the_page_can_be_installed_and_its_options_do_not_move_while_they_load(
    stack: LocalStack, chromium: Browser
) -> None:
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "ines")
    await page.find(".composer button", "Scripted demo")
    await page.find(".composer button", "1 server")
    await page.visit(f"http://{stack.http}/")
    await page.find(".composer button", "Scripted demo")
    moved = await page.run(MOVED)
    manifest = await page.run(
        "fetch(document.querySelector('link[rel=manifest]').href).then((answer) => answer.json())"
    )
    icon = await page.run(f"fetch('{manifest['icons'][0]['src']}').then((answer) => answer.status)")
    problems = await page.ask("Page.getAppManifest")

    assert moved == 0
    assert manifest["start_url"] == "/"
    assert icon == 200
    assert problems["errors"] == []
