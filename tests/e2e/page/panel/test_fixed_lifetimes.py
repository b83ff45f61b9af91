"""Templates that fix how long their workspaces live."""

import pytest

from support.net.browser import Browser
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, new_user, open_panel, sign_in, write_first

pytestmark = pytest.mark.slow

ROW_BUTTON = """
    (() => {
        const row = [...document.querySelectorAll('tbody tr')].find(
            (each) => each.innerText.includes('steady'));
        [...row.querySelectorAll('button')].find(
            (each) => each.innerText === 'Lifetime').click();
    })()
"""


async def test_a_template_fixes_its_lifetime_and_its_workspace_says_so(
    stack: LocalStack, chromium: Browser
) -> None:
    new_user(stack, "tessa", "admin")
    page = await chromium.page()
    await page.resize(1280, 800)
    await sign_in(page, stack, "tessa")
    made = call(stack, "POST", "/api/v1/templates", {"name": "steady", "kind": "scratch"})
    try:
        await page.visit(f"http://{stack.http}/admin/templates")
        await page.find("tbody tr", "steady")
        await page.run(ROW_BUTTON)
        await page.click("dialog input[type=number]")
        await page.type("3")
        await page.click("dialog label", "Fixed")
        shown = await problems_in_all_looks(page)
        await page.click("dialog button", "Save")
        await page.see("3 h, fixed")
        await page.ask("Network.clearBrowserCookies")
        await sign_in(page, stack, "lifta")
        await page.click(".composer button", "Own files")
        await page.click("[role=menuitemradio]", "steady")
        await write_first(page, "repeat after me: here")
        await open_panel(page, "Workspace")
        await page.see("3 h, fixed by its template: only use extends it")
        offered = await page.run(
            "[...document.querySelectorAll('.panel button')].map((each) => each.innerText)"
        )
    finally:
        call(stack, "DELETE", f"/api/v1/templates/{made['id']}")

    assert shown == {}
    assert "One hour more" not in offered
