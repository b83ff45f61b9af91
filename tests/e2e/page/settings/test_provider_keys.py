"""The order of the keys of a provider, changed at the page of an administrator."""

import pytest

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack
from support.stack.page_audit import problems_in_all_looks
from support.stack.page_session import call, new_user, sign_in

pytestmark = pytest.mark.slow

HINTS = "[...document.querySelectorAll('.key-list code')].map((each) => each.innerText).join(' ')"
#: Drags the last key onto the first one.
DRAG = """
    (() => {
        const rows = [...document.querySelectorAll('.key-list li')];
        const data = new DataTransfer();
        const tell = (row, type) => row.dispatchEvent(
            new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
        tell(rows.at(-1), 'dragstart');
        tell(rows[0], 'dragover');
        tell(rows[0], 'drop');
    })()
"""


async def shows(page: Page, hints: str) -> None:
    await page.until(f"{HINTS} === '{hints}'")


async def test_keys_of_a_provider_are_moved_by_buttons_keyboard_and_drag(
    stack: LocalStack, chromium: Browser
) -> None:
    admin_id = new_user(stack, "keyla")
    call(stack, "PATCH", f"/api/v1/users/{admin_id}", {"role": "admin"})
    body = {"name": "keyed", "type": "openai_compatible", "base_url": "http://127.0.0.1:9/v1"}
    made = call(stack, "POST", "/api/v1/providers", body)
    try:
        for hint in ("aaaa", "bbbb", "cccc"):
            key = {"provider_id": made["id"], "key": f"sk-0123456789-{hint}"}
            call(stack, "POST", "/api/v1/provider-keys", key)
        page = await chromium.page()
        await page.resize(1280, 900)
        await sign_in(page, stack, "keyla")
        await page.visit(f"http://{stack.http}/admin/providers")
        await shows(page, "aaaa bbbb cccc")

        await page.click("[aria-label='Try aaaa later']")
        await shows(page, "bbbb aaaa cccc")
        await page.find("[role=status]", "Key number 2 of 3")
        # The focus stays at what was pressed, so the key goes on without looking for it again.
        await page.press("ArrowDown", "Alt")
        await shows(page, "bbbb cccc aaaa")
        await page.find("[role=status]", "Key number 3 of 3")
        await page.press("ArrowUp", "Alt")
        await shows(page, "bbbb aaaa cccc")
        await page.run(DRAG)
        await shows(page, "cccc bbbb aaaa")
        shown = await problems_in_all_looks(page)
        await page.visit(f"http://{stack.http}/admin/providers")
        await shows(page, "cccc bbbb aaaa")
        stored = call(stack, "GET", f"/api/v1/providers/{made['id']}")
    finally:
        call(stack, "DELETE", f"/api/v1/providers/{made['id']}")

    assert shown == {}
    assert [(each["order"], each["hint"]) for each in stored["keys"]] == [
        (1, "cccc"),
        (2, "bbbb"),
        (3, "aaaa"),
    ]
